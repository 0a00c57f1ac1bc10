/* SPDX-License-Identifier: MIT
 *
 * What the programs of this folder share: they run under libsutler_cids.so and play the threads of many cpus, one after
 * the other.
 */
#ifndef TESTS_SCALE_HEAPS_H
#define TESTS_SCALE_HEAPS_H

#include "support/check.h"
#include "support/cids.h"
#include "support/proc.h"
#include <sys/mman.h>

/* Memory that is not the heap's. */
static inline void *books(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(p != MAP_FAILED);
    return p;
}

static inline void scale_begin(unsigned seconds)
{
    test_begin(seconds);
    if (sutler_test_bind_cid == NULL)
        SKIP("not the build with synthetic cids");
    char sync[16] = "";
    CHECK(sutler_option_get("sync", sync, sizeof sync) == 0);
    if (strcmp(sync, "rcs") != 0)
        SKIP("no restartable sections here");
}

static inline struct tally tally_since(struct tally before)
{
    struct tally now = sutler_test_tally();
    return (struct tally){now.fences - before.fences, now.locks - before.locks, now.looks - before.looks,
                          now.reads - before.reads, now.flushed - before.flushed};
}

static inline uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

#endif
