/* SPDX-License-Identifier: MIT */
#include "manager/snapshot.h"

#include "heap/collapse.h"
#include "heap/heap.h"
#include "heap/large.h"
#include "heap/prefault_pool.h"
#include "heap/signal_safe.h"
#include "heap/span.h"
#include "manager/manager.h"
#include "os/lock.h"
#include "os/os.h"

void snapshot_classes(struct snapshot_class *classes)
{
    for (unsigned c = 0; c < CLASS_COUNT; c++)
        classes[c] = (struct snapshot_class){0};
    if (hot.descriptors == NULL)
        return;
    for (uint32_t slice = region_slice_from(0); slice != SLICE_END; slice = region_slice_from(slice + 1)) {
        const struct superblock *s = superblock_at_slice(slice);
        if (s->slice.kind != slice_superblock)
            continue;
        unsigned free_blocks = superblock_free_blocks(s);
        classes[s->class].superblocks++;
        classes[s->class].free += free_blocks;
        classes[s->class].live += s->carved > free_blocks ? s->carved - free_blocks : 0;
        slice += s->has_lent ? 0 : superblock_slices(s) - 1u;
    }
}

void snapshot_take(struct sutler_stats *stats)
{
    struct snapshot_class classes[CLASS_COUNT];
    *stats = (struct sutler_stats){.size = sizeof *stats};
    if (hot.descriptors == NULL)
        return;
    snapshot_classes(classes);
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        stats->superblocks += classes[c].superblocks;
        stats->live_blocks += classes[c].live;
        stats->live_bytes += classes[c].live * size_class[c].bytes;
        stats->free_bytes += classes[c].free * size_class[c].bytes;
    }
    struct span_counts spans = span_counts();
    struct large_counts large = large_counts();
    stats->mapped_bytes =
        spans.opened_bytes + large.mapping_bytes + large.cached_bytes + signal_safe_mapped_bytes();
    stats->span_bytes = spans.in_use_bytes;
    stats->dirty_bytes = spans.dirty_bytes + large.cached_bytes;
    stats->purged_bytes = spans.purged_bytes;
    struct prefault_pool_counts pool = prefault_pool_counts();
    stats->reserve_bytes = pool.reserve_bytes;
    stats->provided_bytes = pool.provided_bytes;
    stats->wasted_bytes = pool.wasted_bytes;
    stats->hit_bytes = pool.hit_bytes;
    stats->miss_bytes = pool.miss_bytes;
    stats->collapsed_bytes = collapse_bytes();
    stats->large_blocks = large.blocks;
    stats->large_bytes = large.bytes;
    stats->live_blocks += large.blocks;
    stats->live_bytes += large.bytes;
    stats->takeovers = takeover_count;
    stats->aborts = rcs_restarts;
    stats->manager_cpu_us = atomic_load_explicit(&manager_life.cpu_us, memory_order_relaxed);
    struct wait_counts waits = wait_counts();
    stats->lock_waits = waits.waits;
    stats->wait_us = waits.ns / 1000;
    stats->file_opens = os_file_opens();
#ifdef SUTLER_HARDENED
    sweep_count(stats);
#endif
    stats->heaps = heap_total;
    for (unsigned i = 0; i < stats->heaps; i++) {
        const struct heap *h = heap_list[i];
        stats->refills += h->refills;
        stats->remote_frees += h->remote_frees;
    }
}
