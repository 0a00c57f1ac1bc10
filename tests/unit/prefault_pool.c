/* SPDX-License-Identifier: MIT
 *
 * The prefault pool under made-up demand: pieces lie ahead of the front, or in the run that is next, on memory nobody
 * has used; its size follows misses and waste within its bound; the unused is purged; touching leaves content alone
 * whoever writes it.
 */
#include "heap/prefault_pool.h"

#include <pthread.h>

#include "heap/arena.h"
#include "heap/prefault.h"
#include "heap/span.h"
#include "os/os.h"
#include "unit.h"

#define TARGET_MIN (4ul << 20)
#define TARGET_MAX (8ul << 20)

static uint32_t take_one(void)
{
    uint32_t first;
    EXPECT(span_take(span_dense, 1, 1, &first));
    return first;
}

/* By superblocks, of memory that was never used. */
static size_t taken_bytes(void)
{
    struct prefault_pool_counts counts = prefault_pool_counts();
    return counts.hit_bytes + counts.miss_bytes;
}

static size_t bound(void)
{
    const size_t least = max_size(TARGET_MIN, min_size(TARGET_MAX, span_counts().in_use_bytes / 8));
    return min_size(least, taken_bytes() / 4);
}

/* Prefaults all that the pool wants; returns the bytes. */
static size_t prefault_all(bool huge)
{
    struct prefault_piece piece;
    size_t bytes = 0;
    while (prefault_pool_next(huge, &piece)) {
        EXPECT(piece.bytes > 0 && piece.bytes <= PREFAULT_PIECE_MAX && piece.bytes % SLICE_BYTES == 0);
        uint32_t first = slice_of(piece.address);
        size_t slices = piece.bytes >> SLICE_SHIFT;
        EXPECT_EQ(first / HUGE_PAGE_SLICES, (first + slices - 1) / HUGE_PAGE_SLICES);
        EXPECT(span_is_zero(first, slices));
        const uint64_t *word = piece.address;
        for (size_t i = 0; i < piece.bytes / 8; i += 512)
            EXPECT_EQ(word[i], 0);
        prefault_piece(&piece);
        bytes += piece.bytes;
        EXPECT(bytes <= bound());
    }
    return bytes;
}

/* Before superblocks have taken much there is nothing to go by, however much large blocks take. */
static void nothing_is_prefaulted_for_large_blocks(void)
{
    struct prefault_piece piece;
    const size_t large_slices = 64, few = 3 * PREFAULT_PIECE_MAX;
    uint32_t large[40];
    for (size_t i = 0; i < ARRAY_LEN(large); i++)
        EXPECT(span_take(span_large, large_slices, 1, &large[i]));
    while (taken_bytes() < few)
        take_one();
    EXPECT(demand_is_none());
    EXPECT(!prefault_pool_next(true, &piece));
    for (size_t i = 0; i < ARRAY_LEN(large); i++)
        span_give(large[i], large_slices);
    pass_begin();
    span_purge(purge_force, 0, &(bool){false}); /* the rest is about memory that nobody has used */
    pass_end();
}

/* Superblocks are taken one after the other until they have taken so much, and the front is in a large run. */
static void reach_fresh_memory(size_t taken)
{
    uint32_t last = take_one();
    for (unsigned in_a_row = 0; in_a_row < 64 || taken_bytes() < taken;) {
        uint32_t next = take_one();
        in_a_row = next == last + 1 ? in_a_row + 1 : 0;
        last = next;
    }
}

static void what_was_taken_bounds_it(void)
{
    reach_fresh_memory(3 * TARGET_MIN);
    EXPECT(bound() < TARGET_MIN);
    EXPECT(prefault_all(false) > bound() / 2);
    reach_fresh_memory(4 * TARGET_MIN);
    EXPECT(bound() == TARGET_MIN);
}

static void demand_is_raised_once(void)
{
    EXPECT_EQ(atomic_load(&heap_demand), demand_raised);
    atomic_store(&heap_demand, demand_delivered);
    take_one();
    EXPECT_EQ(atomic_load(&heap_demand), demand_delivered);
    atomic_store(&heap_demand, demand_none);
    take_one();
    EXPECT_EQ(atomic_load(&heap_demand), demand_raised);
}

/* While the manager rests the program is not to wake it. */
static void no_demand_is_raised_while_resting(void)
{
    atomic_store(&heap_demand, demand_none);
    const uint64_t long_ns = 3600000000000ull;
    prefault_pool_rest(os_now_ns() + long_ns);
    take_one();
    take_one();
    EXPECT_EQ(atomic_load(&heap_demand), demand_none);
    prefault_pool_rest(os_now_ns());
    take_one();
    EXPECT_EQ(atomic_load(&heap_demand), demand_raised);
}

static void what_is_prefaulted_is_hit(bool huge)
{
    struct prefault_pool_counts before = prefault_pool_counts();
    size_t prefaulted = prefault_all(huge);
    EXPECT(prefaulted > 0);
    struct prefault_pool_counts full = prefault_pool_counts();
    EXPECT_EQ(full.reserve_bytes, before.reserve_bytes + prefaulted);
    EXPECT_EQ(full.provided_bytes - before.provided_bytes, prefaulted);
    EXPECT_EQ(prefault_all(huge), 0); /* full */
    size_t taken = 0;
    while (prefault_pool_counts().reserve_bytes > 0) {
        EXPECT(span_is_zero(take_one(), 1));
        EXPECT(++taken < 100000);
    }
    struct prefault_pool_counts after = prefault_pool_counts();
    EXPECT_EQ(after.hit_bytes - full.hit_bytes, full.reserve_bytes);
    /* What the program was about to touch when it was overtaken: less than a huge page. */
    EXPECT(after.miss_bytes - full.miss_bytes <= PREFAULT_PIECE_MAX);
}

static void target_grows_with_misses_up_to_the_bound(void)
{
    size_t target = prefault_pool_counts().target_bytes;
    for (int i = 0; i < 12; i++) {
        take_one();
        take_one(); /* the program has caught up */
        prefault_all(false);
        while (prefault_pool_counts().reserve_bytes > 0)
            take_one();
        take_one();
        EXPECT(prefault_pool_counts().target_bytes >= target || prefault_pool_counts().target_bytes == bound());
        target = prefault_pool_counts().target_bytes;
    }
    EXPECT(target <= bound() && target > bound() / 2);
}

/* What the program's pace does not ask for is not prefaulted; a pace alone makes no pool larger. */
static void target_follows_the_pace_downwards(void)
{
    take_one();
    EXPECT(prefault_all(false) > 0);
    size_t target = prefault_pool_counts().target_bytes;
    EXPECT(target > TARGET_MIN + SLICE_BYTES);
    prefault_pool_expect(target * 2);
    EXPECT_EQ(prefault_pool_counts().target_bytes, target);
    prefault_pool_expect(target - SLICE_BYTES);
    EXPECT_EQ(prefault_pool_counts().target_bytes, target - SLICE_BYTES);
    prefault_pool_expect(0);
    EXPECT_EQ(prefault_pool_counts().target_bytes, HUGE_PAGE_BYTES); /* a program that hardly grows gets no more */
    while (prefault_pool_counts().reserve_bytes >= HUGE_PAGE_BYTES / 2)
        take_one();
    EXPECT(prefault_all(false) > 0);
    EXPECT_EQ(prefault_pool_counts().reserve_bytes, HUGE_PAGE_BYTES);
    prefault_pool_expect(TARGET_MIN);
    EXPECT_EQ(prefault_pool_counts().target_bytes, TARGET_MIN);
    prefault_pool_expect(SIZE_MAX);
    EXPECT_EQ(prefault_pool_counts().target_bytes, target);
    target_grows_with_misses_up_to_the_bound();
}

/* A huge page the bound has no room for yet is not passed over. */
static void what_was_refused_comes_later(void)
{
    const size_t page_and_a_quarter = TARGET_MIN + TARGET_MIN / 4;
    while (prefault_pool_counts().reserve_bytes > 0)
        take_one();
    prefault_pool_expect(page_and_a_quarter);
    prefault_all(true);
    struct prefault_pool_counts before = prefault_pool_counts();
    for (unsigned i = 0; i < 8 * HUGE_PAGE_SLICES; i++) {
        take_one();
        prefault_all(true);
    }
    EXPECT(prefault_pool_counts().miss_bytes - before.miss_bytes <= PREFAULT_PIECE_MAX);
    prefault_pool_expect(SIZE_MAX);
}

static void shrink_target(void)
{
    lock_take(&span_lock);
    while (prefault_pool_counts().target_bytes > TARGET_MIN)
        prefault_pool_shrink();
    lock_release(&span_lock);
}

/* What is being prefaulted nobody else has: who comes to it meanwhile takes what lies behind, is kept more from then
 * on, and comes back to it. */
static void who_overtakes_goes_past(void)
{
    struct prefault_piece piece, next;
    while (prefault_pool_counts().reserve_bytes > 0)
        take_one();
    EXPECT(prefault_pool_next(true, &piece));
    shrink_target();
    EXPECT(piece.is_huge && piece.bytes == PREFAULT_PIECE_MAX);
    uint32_t first = slice_of(piece.address), end = first + HUGE_PAGE_SLICES, taken;
    do
        taken = take_one();
    while (taken < first);
    EXPECT_EQ(taken, end);
    size_t target = prefault_pool_counts().target_bytes;
    EXPECT(prefault_pool_next(true, &next));
    EXPECT_EQ(prefault_pool_counts().target_bytes, min_size(bound(), 2 * target));
    EXPECT_EQ(slice_of(next.address), end + HUGE_PAGE_SLICES); /* in the page it has come to it is left alone */
    prefault_piece(&piece);
    prefault_piece(&next);
    size_t hit = prefault_pool_counts().hit_bytes;
    for (uint32_t at = first; at < end; at++)
        EXPECT_EQ(take_one(), at);
    EXPECT_EQ(prefault_pool_counts().hit_bytes - hit, PREFAULT_PIECE_MAX);
    EXPECT_EQ(take_one(), end + 1); /* and on where it was */
}

/* Purged by the second pass that finds it unused; counted as waste; the target is halved. */
static void what_lies_unused_is_purged(void)
{
    while (prefault_pool_counts().reserve_bytes >= TARGET_MIN)
        take_one();
    EXPECT(prefault_all(true) > 0);
    struct prefault_pool_counts before = prefault_pool_counts();
    bool changed = false;
    span_purge(purge_decay, 0, &changed);
    EXPECT(changed);
    EXPECT_EQ(prefault_pool_counts().reserve_bytes, before.reserve_bytes);
    size_t purged = span_purge(purge_decay, 0, &changed);
    struct prefault_pool_counts after = prefault_pool_counts();
    EXPECT(purged >= before.reserve_bytes);
    EXPECT_EQ(after.reserve_bytes, 0);
    EXPECT_EQ(after.wasted_bytes - before.wasted_bytes, before.reserve_bytes);
    EXPECT_EQ(after.target_bytes, max_size(TARGET_MIN, before.target_bytes / 2));
}

/* Memory that was used holds pages already: no part of the pool. */
static void used_memory_is_not_prefaulted(void)
{
    enum { slices = 96 };
    bool changed = false;
    uint32_t first;
    EXPECT(span_take(span_dense, slices, 1, &first));
    span_purge(purge_force, 0, &changed);
    span_give(first, slices);
    for (int i = 0; i < 8; i++)
        take_one(); /* from what was just purged, or from smaller holes */
    struct prefault_piece piece;
    while (prefault_pool_next(true, &piece)) {
        uint32_t at = slice_of(piece.address);
        EXPECT(at + (piece.bytes >> SLICE_SHIFT) <= first || at >= first + slices);
        prefault_piece(&piece);
    }
}

/* Memory that was used and is free again comes first, however much longer that run is than what is prefaulted. */
static void used_memory_is_taken_first(void)
{
    uint32_t first;
    const uint32_t slices = 4 * TARGET_MAX >> SLICE_SHIFT;
    bool changed;
    EXPECT(span_take(span_dense, slices + 2, 1, &first)); /* with one on either side to stay, so that it does not merge */
    span_purge(purge_force, 0, &changed);
    take_one();
    EXPECT(prefault_all(true) > 0);
    span_give(++first, slices);
    struct prefault_pool_counts before = prefault_pool_counts();
    for (uint32_t i = 0; i < slices; i++) {
        uint32_t taken = take_one();
        EXPECT(taken >= first && taken < first + slices);
    }
    struct prefault_pool_counts after = prefault_pool_counts();
    EXPECT_EQ(after.hit_bytes, before.hit_bytes);
    EXPECT_EQ(after.miss_bytes, before.miss_bytes);
    for (unsigned i = 0; i < HUGE_PAGE_SLICES && prefault_pool_counts().hit_bytes == before.hit_bytes; i++)
        take_one(); /* what else is left, and on with what is prefaulted */
    EXPECT(prefault_pool_counts().hit_bytes > before.hit_bytes);
}

/* Where the dense arena ends against the one for large blocks, the free span behind the border is not the program's
 * next.
 */
static void large_blocks_are_not_prefaulted(void)
{
    struct arena *dense = &arena[span_dense], *large = &arena[span_large];
    uint32_t first;
    for (size_t opened = region_opened_bytes(); region_opened_bytes() == opened;)
        take_one();
    size_t slices = large->fresh_end - large->fresh_first + 64u;
    EXPECT(span_take(span_large, slices, 1, &first));
    span_give(first, slices);
    bool changed = false;
    span_purge(purge_force, 0, &changed);
    while (dense->fresh_first < dense->fresh_end)
        take_one();
    if (arena_of(dense->fresh_end) != large)
        return unit_say("no border between the arenas here\n");
    struct prefault_piece piece;
    for (int i = 0; i < 4; i++)
        if (prefault_pool_next(true, &piece)) {
            EXPECT(arena_of(slice_of(piece.address)) == dense);
            prefault_piece(&piece);
        }
}

/* Where the region goes on elsewhere, for large blocks have the slices behind it, so does the pool. */
static void goes_on_in_the_next_run(void)
{
    const size_t few = 8;
    struct arena *dense = &arena[span_dense], *large = &arena[span_large];
    while (prefault_pool_counts().reserve_bytes > 0 || dense->fresh_end - dense->fresh_first > few ||
           dense->fresh_end == dense->fresh_first)
        take_one();
    lock_take(&span_lock);
    EXPECT(arena_open(large, large->fresh_end - large->fresh_first + 1));
    lock_release(&span_lock);
    uint32_t end = dense->fresh_end;
    EXPECT(prefault_all(false) >= TARGET_MIN);
    EXPECT(dense->fresh_first > end);
    struct prefault_pool_counts before = prefault_pool_counts();
    for (size_t i = 0; i < 2 * few; i++)
        take_one();
    struct prefault_pool_counts after = prefault_pool_counts();
    EXPECT(after.miss_bytes - before.miss_bytes <= SLICE_BYTES); /* what the program was about to touch */
    EXPECT(after.hit_bytes - before.hit_bytes >= (2 * few - 1) * SLICE_BYTES);
}

static uint64_t *counted;
static _Atomic bool done;

static void *count(void *unused)
{
    for (uint64_t n = 1; n <= 200000; n++)
        for (size_t page = 0; page < 8; page++)
            *(volatile uint64_t *)(counted + page * 512) = n; /* a plain store, as a program's */
    atomic_store(&done, true);
    return unused;
}

static void touching_leaves_content_alone(void)
{
    counted = unit_map(8 * 4096);
    pthread_t thread;
    EXPECT_EQ(pthread_create(&thread, NULL, count, NULL), 0);
    uint64_t last[8] = {0};
    while (!atomic_load(&done)) {
        for (size_t page = 0; page < 8; page++) {
            os_touch(counted + page * 512);
            uint64_t now = *(volatile uint64_t *)(counted + page * 512);
            EXPECT(now >= last[page]);
            last[page] = now;
        }
    }
    pthread_join(thread, NULL);
    for (size_t page = 0; page < 8; page++)
        EXPECT_EQ(counted[page * 512], 200000);
}

int main(void)
{
    unit_print_mode();
    unit_watchdog(60);
    atomic_store(&manager_is_missing, false); /* it is us */
    nothing_is_prefaulted_for_large_blocks();
    what_was_taken_bounds_it();
    demand_is_raised_once();
    no_demand_is_raised_while_resting();
    what_is_prefaulted_is_hit(true);
    what_is_prefaulted_is_hit(false);
    for (int i = 0; i < 2000; i++) /* enough in use for a bound of several MiB */
        take_one();
    EXPECT(span_counts().in_use_bytes / 8 > TARGET_MAX);
    target_grows_with_misses_up_to_the_bound();
    target_follows_the_pace_downwards();
    what_is_prefaulted_is_hit(true);
    what_was_refused_comes_later();
    who_overtakes_goes_past();
    goes_on_in_the_next_run();
    what_lies_unused_is_purged();
    used_memory_is_not_prefaulted();
    used_memory_is_taken_first();
    large_blocks_are_not_prefaulted();
    touching_leaves_content_alone();
    return 0;
}
