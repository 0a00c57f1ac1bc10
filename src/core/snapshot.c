/* SPDX-License-Identifier: MIT */
#include "core/snapshot.h"

#include "core/core.h"
#include "heap/large.h"
#include "heap/span.h"
#include "manager/manager.h"
#include "options/options.h"
#include "os/os.h"
#include "stats/stats.h"

static void add_superblock(struct sutler_stats *stats, const struct superblock *s)
{
    uint64_t word = superblock_word(s);
    unsigned free_blocks = word_count(word) + word_count(atomic_load_explicit(&s->x_remote, memory_order_relaxed));
    unsigned live = s->carved > free_blocks ? s->carved - free_blocks : 0;
    stats->superblocks++;
    stats->live_blocks += live;
    stats->live_bytes += (size_t)live * s->block_bytes;
    stats->free_bytes += (size_t)free_blocks * s->block_bytes;
}

void snapshot_take(struct sutler_stats *stats)
{
    *stats = (struct sutler_stats){.size = sizeof *stats};
    if (!core_ready())
        return;
    for (uint32_t slice = window_slice_from(0); slice != SLICE_END; slice = window_slice_from(slice + 1)) {
        const struct superblock *s = descriptor_of_slice(slice);
        if (s->kind == slice_superblock) {
            add_superblock(stats, s);
            slice += size_class[s->class].slices - 1u;
        }
    }
    struct span_counts spans = span_counts();
    struct large_counts large = large_counts();
    stats->mapped_bytes = spans.opened_bytes + large.mapping_bytes + large.cached_bytes;
    stats->span_bytes = spans.in_use_bytes;
    stats->dirty_bytes = spans.dirty_bytes + large.cached_bytes;
    stats->purged_bytes = spans.purged_bytes;
    stats->large_blocks = large.blocks;
    stats->large_bytes = large.bytes;
    stats->live_blocks += large.blocks;
    stats->live_bytes += large.bytes;
    stats->takeovers = takeover_count;
    stats->manager_cpu_us = manager_cpu_us();
    stats->heaps = heap_total;
    for (unsigned i = 0; i < stats->heaps; i++) {
        const struct heap *h = heap_list[i];
        stats->refills += h->refills;
        stats->remote_frees += h->remote_frees;
        stats->aborts += h->aborts;
    }
}

void snapshot_write(int fd, bool json)
{
    static const char *const mode_name[] = {[sync_rcs] = "rcs", [sync_cpu] = "cpu", [sync_thread] = "thread"};
    static const char *const verdict_text[] = {
        [rcs_usable] = "restartable sections in use",
        [rcs_not_asked] = "as SUTLER_SYNC asks",
        [rcs_no_libc] = "libc registers no rseq area",
        [rcs_no_membarrier] = "the kernel has no rseq fence, or forbids it",
        [rcs_selftest_failed] = "the self-test of the sections failed",
        [rcs_cpus_unknown] = "there may be more cpus than heaps",
    };
    struct sutler_stats stats;
    snapshot_take(&stats);
    const struct stats_fact facts[] = {
        {"version", sutler_version()},
        {"sync", mode_name[sync_mode]},
        {"sync_reason", verdict_text[rcs_verdict]},
    };
    stats_write(fd, json, &stats, facts, ARRAY_LEN(facts));
}

/* Programs that check their output at exit (coreutils) close standard error before destructors run: the report has a
 * descriptor of its own. */
static int report_fd = 2;

static __attribute__((constructor(102))) void keep_standard_error(void)
{
    if (option_get(option_stats) != stats_off)
        report_fd = os_keep_fd(2);
}

static __attribute__((destructor)) void report_at_exit(void)
{
    unsigned choice = option_get(option_stats);
    if (choice != stats_off)
        snapshot_write(report_fd, choice == stats_json);
}
