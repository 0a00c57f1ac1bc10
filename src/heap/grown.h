/* SPDX-License-Identifier: MIT
 *
 * What is remembered of large blocks that realloc makes longer and shorter, and what that says of the next ones.
 */
#ifndef SUTLER_HEAP_GROWN_H
#define SUTLER_HEAP_GROWN_H

#include "base/compiler.h"

struct mapping;

/* Whether a span that is to grow, and would be copied to one of `bytes`, had better become a mapping, which the system
 * moves without copying.  Any thread; may wait for span_lock. */
bool grown_suits_mapping(size_t bytes);
/* Whether there may be one more of those. */
bool grown_may_be_mapping(void);
/* A mapping that grew was freed. */
void grown_note_freed(void);

/* A mapping is made longer or shorter.  Under mapping_lock. */
void grown_note_resized(struct mapping *m, size_t bytes);
/* Whether one that is long enough for `size` keeps its length: no less is asked for than before, or less by an eighth
 * at most; or it was made shorter and longer twice, within a second each time, and not long ago, and half is to stay
 * at least: the system would give and take its pages each time.  Under mapping_lock. */
bool grown_stays(struct mapping *m, size_t size);

#endif
