/* SPDX-License-Identifier: MIT
 *
 * Counting the heap by walking its descriptors: nothing is counted on the fast paths.
 */
#ifndef SUTLER_MANAGER_SNAPSHOT_H
#define SUTLER_MANAGER_SNAPSHOT_H

#include "sutler/sutler.h"

/* Takes no lock; other threads go on, so figures can be apart by what was in flight.  All zero before the first
 * allocation. */
void snapshot_take(struct sutler_stats *stats);
#ifdef SUTLER_HARDENED
void sweep_count(struct sutler_stats *stats); /* hardened/sweep.c: its part */
#endif

/* Superblocks of each size class, and its blocks, in the program's hands and free; `classes` has CLASS_COUNT places. */
struct snapshot_class {
    size_t superblocks, live, free;
};
void snapshot_classes(struct snapshot_class *classes);

#endif
