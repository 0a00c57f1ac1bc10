/* SPDX-License-Identifier: MIT
 *
 * The invariants of one superblock, for AUDIT (base/compiler.h).  tests/unit/inspect.c asks the same of all of them,
 * and shares no code with this.
 *
 * Both return what is wrong, or NULL.  The superblock is detached, or the lock of the heap that owns it is held and it
 * is not active.  Other threads may be freeing its blocks.
 */
#ifndef SUTLER_HEAP_AUDIT_H
#define SUTLER_HEAP_AUDIT_H

#include "heap/heap.h"

/* The descriptors of its slices agree with its class, `carved` with the units, and no block is on both lists.  A list
 * that is broken is no internal error: the program may have written to a free block, and whoever meets that reports
 * it. */
const char *superblock_check(const struct superblock *s);

/* It is where heap_relist leaves what `h` keeps: owned by it, linked on the list of its class and group, and armed for
 * the next step. */
const char *superblock_check_listed(const struct superblock *s, const struct heap *h);

#endif
