/* SPDX-License-Identifier: MIT
 *
 * Why: see library_counts.h.
 */
#define SUTLER_WEAK
#include "library_counts.h"

#include "result.h"
#include "support/cids.h"
#include "sutler/sutler.h"

struct library_counts library_counts_read(void)
{
    struct sutler_stats stats;
    if (sutler_is_active == NULL || !sutler_is_active() || sutler_stats_get(&stats, sizeof stats) != 0)
        return (struct library_counts){.known = false};
    struct library_counts counts = {.known = true,
                                    .slow_paths = stats.refills,
                                    .remote_frees = stats.remote_frees,
                                    .takeovers = stats.takeovers,
                                    .lock_waits = stats.lock_waits,
                                    .heaps = stats.heaps,
                                    .superblocks = stats.superblocks};
    if (sutler_test_tally != NULL) {
        struct tally tally = sutler_test_tally();
        counts.tallied = true;
        counts.locks = tally.locks;
        counts.fences = tally.fences;
        counts.looks = tally.looks;
    }
    return counts;
}

struct library_counts library_counts_between(const struct library_counts *before, const struct library_counts *after)
{
    struct library_counts counts = *after;
    counts.slow_paths -= before->slow_paths;
    counts.remote_frees -= before->remote_frees;
    counts.takeovers -= before->takeovers;
    counts.lock_waits -= before->lock_waits;
    counts.locks -= before->locks;
    counts.fences -= before->fences;
    counts.looks -= before->looks;
    return counts;
}

void library_counts_print(const struct library_counts *counts, uint64_t mallocs)
{
    if (!counts->known)
        return;
    result_count("heaps", counts->heaps);
    result_count("superblocks", counts->superblocks);
    result_count("slow_paths", counts->slow_paths);
    if (mallocs != 0 && counts->slow_paths != 0)
        result_real("mallocs_per_slow_path", (double)mallocs / (double)counts->slow_paths);
    result_count("remote_frees", counts->remote_frees);
    result_count("takeovers", counts->takeovers);
    result_count("lock_waits", counts->lock_waits);
    if (counts->tallied) {
        result_count("locks", counts->locks);
        result_count("fences", counts->fences);
        result_count("looks", counts->looks);
    }
}
