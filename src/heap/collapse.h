/* SPDX-License-Identifier: MIT
 *
 * What a program filled in small pages is made huge pages afterwards: what it took before the manager ran, where it was
 * faster than the manager, where huge pages were dear then, and what a purge had broken.  Only where superblocks hold
 * all of a huge page, three quarters of that are in use, and every small page of it is there and the process's own: so
 * no memory is added.
 *
 * The system copies the page, and who touches it meanwhile waits: half a millisecond.  Therefore a page has to have
 * been full for a while, and the next one follows after many times what the last one took.  (MADV_COLLAPSE, Linux 6.1.)
 */
#ifndef SUTLER_HEAP_COLLAPSE_H
#define SUTLER_HEAP_COLLAPSE_H

#include "base/compiler.h"

/* Looks at a few dozen pages and collapses one at most; rounds through the heap are some time apart.  Returns how many
 * nanoseconds later another call may find one, 0 if there is none until the heap changes.  By the manager, in a
 * pass. */
uint64_t collapse_next(uint64_t now_ns);

/* True if huge pages are to be made of small ones at all, as the options, the system and their price are. */
bool collapse_is_wanted(uint64_t now_ns);

/* Before the first call of a new manager thread, which has descriptors of its own. */
void collapse_start(void);

/* Made huge since the start. */
size_t collapse_bytes(void);

#endif
