/* SPDX-License-Identifier: MIT
 *
 * What a huge page costs against as many small ones, in processor time of whoever has the system bring them.  Mostly it
 * costs a fifth; but where the system's host takes free memory back, a page it has to find again costs milliseconds, while
 * small ones are still to be had.  Nothing tells when that is so, nor when it is over: it is tried.
 *
 * While they are dear none is asked for until a time has passed in which what the last one cost is hardly noticed; so
 * the tries cost a few hundredths of the time, whatever a page costs.
 *
 * May be called from any thread: what two note at once may be lost.
 */
#ifndef SUTLER_HEAP_HUGE_PRICE_H
#define SUTLER_HEAP_HUGE_PRICE_H

#include "base/compiler.h"

/* So many bytes of small pages were brought; a huge page was; the system would not have it so. */
void huge_price_note_small(uint64_t used_us, size_t bytes);
void huge_price_note_huge(uint64_t used_us, uint64_t now_ns);
void huge_price_note_refused(uint64_t now_ns);

/* Whether enough small pages were seen. */
bool huge_price_is_known(void);
/* Whether to ask for a huge page: the last ones were fair on the average, or it is time to try again. */
bool huge_price_is_fair(uint64_t now_ns);

#endif
