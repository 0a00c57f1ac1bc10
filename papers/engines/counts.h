/* SPDX-License-Identifier: MIT
 *
 * Why: the papers explain their tables by counting (MMT figure 2 and table I, the thesis's misses), and on a busy
 * machine counts say more than times.  Counted is what is rare and dear anyway: a word to the other thread, a sleep, a
 * wake, a lock found held.  Nothing on the path of a call that needs none of these is counted.
 *
 * Sleeps and wakes are calls of the kernel, each of them, so they are what `strace -f -e trace=futex` shows of an
 * engine.
 */
#ifndef ENGINES_COUNTS_H
#define ENGINES_COUNTS_H

#include "base.h"

struct engine_counts {
    uint64_t messages;   /* questions to the manager whose answer a thread waited for */
    uint64_t handed;     /* freed blocks, or queues of them, given to the manager without waiting */
    uint64_t sleeps;     /* waits, of either side's, that the kernel was asked for */
    uint64_t wakes;      /* and their ends */
    uint64_t lock_waits; /* a lock of the engine's that was held */
    uint64_t buckets;    /* MMT: buckets that clients have taken */
    uint64_t attended;   /* MMT: clients that the server looks at now */
};
extern struct engine_counts engine_counts;

static inline void engine_count(uint64_t *which)
{
    __atomic_fetch_add(which, 1, __ATOMIC_RELAXED);
}

#endif
