/* SPDX-License-Identifier: MIT
 *
 * Why: time says that something is slow, a count says why.  Where the library is loaded that keeps statistics
 * (sutler/sutler.h), programs print what it counted during the timed interval: how often malloc left its fast path, how
 * many frees were of other heaps' blocks, how often heaps were taken over, how often a lock was found held; and what
 * only the build with synthetic cids counts (tests/support/cids.h): locks taken, fences sent, heaps looked at on behalf
 * of others.  Under every other allocator nothing is printed.
 *
 * Reading walks over the heap and is done outside the interval.
 */
#ifndef BENCH_LIBRARY_COUNTS_H
#define BENCH_LIBRARY_COUNTS_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct library_counts {
    bool known;
    uint64_t slow_paths, remote_frees, takeovers, lock_waits;
    uint64_t heaps, superblocks; /* there are now, not since the start */
    bool tallied;
    uint64_t locks, fences, looks;
};

struct library_counts library_counts_read(void);

/* What was counted between two readings. */
struct library_counts library_counts_between(const struct library_counts *before, const struct library_counts *after);

/* Appends them to the result line, and if the program knows how many mallocs the interval had (else 0), how many of
 * them a slow path comes to. */
void library_counts_print(const struct library_counts *counts, uint64_t mallocs);

#ifdef __cplusplus
}
#endif
#endif
