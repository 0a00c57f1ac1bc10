/* SPDX-License-Identifier: MIT
 *
 * Counts of what must not grow with the number of heaps, for tests and benches: only the build with synthetic cids
 * (tests/support/cids_library.c) has them.  Everywhere else TALLY is nothing.
 */
#ifndef SUTLER_BASE_TALLY_H
#define SUTLER_BASE_TALLY_H

#ifdef SUTLER_TEST_CIDS
#include "base/compiler.h"

struct tally {
    uint64_t fences; /* sent to every cpu the process runs on */
    uint64_t locks;  /* taken, whichever */
    uint64_t looks;  /* one heap looked at on behalf of another */
    uint64_t reads;  /* of those, the ones that read all of its active lists */
    uint64_t flushed; /* superblocks taken off pending stacks */
};
extern struct tally tally;

#define TALLY(field) __atomic_fetch_add(&tally.field, 1, __ATOMIC_RELAXED)
#else
#define TALLY(field) ((void)0)
#endif

#endif
