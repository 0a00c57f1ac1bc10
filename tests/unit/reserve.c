/* SPDX-License-Identifier: MIT
 *
 * The reserve under made-up demand: pieces lie ahead of the front, or in the run that is next, on memory nobody has
 * used; its size follows misses and waste within its bound; unused reserve is purged; touching leaves content alone
 * whoever writes it.
 */
#include "heap/reserve.h"

#include <pthread.h>

#include "heap/arena.h"
#include "heap/ready.h"
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

static size_t bound(void)
{
    return max_size(TARGET_MIN, min_size(TARGET_MAX, span_counts().in_use_bytes / 8));
}

/* Makes ready all that the reserve wants; returns the bytes. */
static size_t provide(bool huge)
{
    struct reserve_piece piece;
    size_t bytes = 0;
    while (reserve_next(huge, &piece)) {
        EXPECT(piece.bytes > 0 && piece.bytes <= RESERVE_PIECE_MAX && piece.bytes % SLICE_BYTES == 0);
        uint32_t first = slice_of(piece.address);
        size_t slices = piece.bytes >> SLICE_SHIFT;
        EXPECT_EQ(first / HUGE_PAGE_SLICES, (first + slices - 1) / HUGE_PAGE_SLICES);
        EXPECT(span_is_zero(first, slices));
        const uint64_t *word = piece.address;
        for (size_t i = 0; i < piece.bytes / 8; i += 512)
            EXPECT_EQ(word[i], 0);
        ready_piece(&piece);
        bytes += piece.bytes;
        EXPECT(bytes <= bound());
    }
    return bytes;
}

/* Superblocks are taken one after the other until the front is in a large run. */
static void reach_fresh_memory(void)
{
    uint32_t last = take_one();
    for (unsigned in_a_row = 0; in_a_row < 64;) {
        uint32_t next = take_one();
        in_a_row = next == last + 1 ? in_a_row + 1 : 0;
        last = next;
    }
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
    reserve_rest(os_now_ns() + long_ns);
    take_one();
    take_one();
    EXPECT_EQ(atomic_load(&heap_demand), demand_none);
    reserve_rest(os_now_ns());
    take_one();
    EXPECT_EQ(atomic_load(&heap_demand), demand_raised);
}

static void what_is_ready_is_hit(bool huge)
{
    struct reserve_counts before = reserve_counts();
    size_t provided = provide(huge);
    EXPECT(provided > 0);
    struct reserve_counts ready = reserve_counts();
    EXPECT_EQ(ready.reserve_bytes, before.reserve_bytes + provided);
    EXPECT_EQ(ready.provided_bytes - before.provided_bytes, provided);
    EXPECT_EQ(provide(huge), 0); /* full */
    size_t taken = 0;
    while (reserve_counts().reserve_bytes > 0) {
        EXPECT(span_is_zero(take_one(), 1));
        EXPECT(++taken < 100000);
    }
    struct reserve_counts after = reserve_counts();
    EXPECT_EQ(after.hit_bytes - ready.hit_bytes, ready.reserve_bytes);
    /* What the program was about to touch when it was overtaken: less than a huge page. */
    EXPECT(after.miss_bytes - ready.miss_bytes <= RESERVE_PIECE_MAX);
}

static void target_grows_with_misses_up_to_the_bound(void)
{
    size_t target = reserve_counts().target_bytes;
    for (int i = 0; i < 12; i++) {
        take_one();
        take_one(); /* the program has caught up */
        provide(false);
        while (reserve_counts().reserve_bytes > 0)
            take_one();
        take_one();
        EXPECT(reserve_counts().target_bytes >= target || reserve_counts().target_bytes == bound());
        target = reserve_counts().target_bytes;
    }
    EXPECT(target <= bound() && target > bound() / 2);
}

/* What the program's pace does not ask for is not made ready; a pace alone makes no reserve larger. */
static void target_follows_the_pace_downwards(void)
{
    take_one();
    EXPECT(provide(false) > 0);
    size_t target = reserve_counts().target_bytes;
    EXPECT(target > TARGET_MIN + SLICE_BYTES);
    reserve_expect(target * 2);
    EXPECT_EQ(reserve_counts().target_bytes, target);
    reserve_expect(target - SLICE_BYTES);
    EXPECT_EQ(reserve_counts().target_bytes, target - SLICE_BYTES);
    reserve_expect(0);
    EXPECT_EQ(reserve_counts().target_bytes, TARGET_MIN);
    while (reserve_counts().reserve_bytes >= TARGET_MIN / 2)
        take_one();
    EXPECT(provide(false) > 0);
    EXPECT_EQ(reserve_counts().reserve_bytes, TARGET_MIN);
    reserve_expect(SIZE_MAX);
    EXPECT_EQ(reserve_counts().target_bytes, target);
    target_grows_with_misses_up_to_the_bound();
}

/* A huge page the bound has no room for yet is not passed over. */
static void what_was_refused_comes_later(void)
{
    const size_t page_and_a_quarter = TARGET_MIN + TARGET_MIN / 4;
    while (reserve_counts().reserve_bytes > 0)
        take_one();
    reserve_expect(page_and_a_quarter);
    provide(true);
    struct reserve_counts before = reserve_counts();
    for (unsigned i = 0; i < 8 * HUGE_PAGE_SLICES; i++) {
        take_one();
        provide(true);
    }
    EXPECT(reserve_counts().miss_bytes - before.miss_bytes <= RESERVE_PIECE_MAX);
    reserve_expect(SIZE_MAX);
}

static void shrink_target(void)
{
    lock_take(&span_lock);
    while (reserve_counts().target_bytes > TARGET_MIN)
        reserve_shrink();
    lock_release(&span_lock);
}

/* What is being made ready nobody else has: who comes to it meanwhile takes what lies behind, is kept more from then on,
 * and comes back to it. */
static void who_overtakes_goes_past(void)
{
    struct reserve_piece piece, next;
    while (reserve_counts().reserve_bytes > 0)
        take_one();
    EXPECT(reserve_next(true, &piece));
    shrink_target();
    EXPECT(piece.is_huge && piece.bytes == RESERVE_PIECE_MAX);
    uint32_t first = slice_of(piece.address), end = first + HUGE_PAGE_SLICES, taken;
    do
        taken = take_one();
    while (taken < first);
    EXPECT_EQ(taken, end);
    size_t target = reserve_counts().target_bytes;
    EXPECT(reserve_next(true, &next));
    EXPECT_EQ(reserve_counts().target_bytes, min_size(bound(), 2 * target));
    EXPECT_EQ(slice_of(next.address), end + HUGE_PAGE_SLICES); /* in the page it has come to it is left alone */
    ready_piece(&piece);
    ready_piece(&next);
    size_t hit = reserve_counts().hit_bytes;
    for (uint32_t at = first; at < end; at++)
        EXPECT_EQ(take_one(), at);
    EXPECT_EQ(reserve_counts().hit_bytes - hit, RESERVE_PIECE_MAX);
    EXPECT_EQ(take_one(), end + 1); /* and on where it was */
}

/* Purged by the second pass that finds it unused; counted as waste; the target is halved. */
static void unused_reserve_is_purged(void)
{
    while (reserve_counts().reserve_bytes >= TARGET_MIN)
        take_one();
    EXPECT(provide(true) > 0);
    struct reserve_counts before = reserve_counts();
    bool changed = false;
    span_purge(purge_decay, 0, &changed);
    EXPECT(changed);
    EXPECT_EQ(reserve_counts().reserve_bytes, before.reserve_bytes);
    size_t purged = span_purge(purge_decay, 0, &changed);
    struct reserve_counts after = reserve_counts();
    EXPECT(purged >= before.reserve_bytes);
    EXPECT_EQ(after.reserve_bytes, 0);
    EXPECT_EQ(after.wasted_bytes - before.wasted_bytes, before.reserve_bytes);
    EXPECT_EQ(after.target_bytes, max_size(TARGET_MIN, before.target_bytes / 2));
}

/* Memory that was used holds pages already: no part of the reserve. */
static void used_memory_is_not_provided_for(void)
{
    enum { slices = 96 };
    bool changed = false;
    uint32_t first;
    EXPECT(span_take(span_dense, slices, 1, &first));
    span_purge(purge_force, 0, &changed);
    span_give(first, slices);
    for (int i = 0; i < 8; i++)
        take_one(); /* from what was just purged, or from smaller holes */
    struct reserve_piece piece;
    while (reserve_next(true, &piece)) {
        uint32_t at = slice_of(piece.address);
        EXPECT(at + (piece.bytes >> SLICE_SHIFT) <= first || at >= first + slices);
        ready_piece(&piece);
    }
}

/* Where the dense arena ends against the one for large blocks, the free span behind the border is not the program's
 * next.
 */
static void large_blocks_are_not_provided_for(void)
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
    struct reserve_piece piece;
    for (int i = 0; i < 4; i++)
        if (reserve_next(true, &piece)) {
            EXPECT(arena_of(slice_of(piece.address)) == dense);
            ready_piece(&piece);
        }
}

/* Where the region goes on elsewhere, for large blocks have the slices behind it, so does the reserve. */
static void goes_on_in_the_next_run(void)
{
    const size_t few = 8;
    struct arena *dense = &arena[span_dense], *large = &arena[span_large];
    while (reserve_counts().reserve_bytes > 0 || dense->fresh_end - dense->fresh_first > few ||
           dense->fresh_end == dense->fresh_first)
        take_one();
    lock_take(&span_lock);
    EXPECT(arena_open(large, large->fresh_end - large->fresh_first + 1));
    lock_release(&span_lock);
    uint32_t end = dense->fresh_end;
    EXPECT(provide(false) >= TARGET_MIN);
    EXPECT(dense->fresh_first > end);
    struct reserve_counts before = reserve_counts();
    for (size_t i = 0; i < 2 * few; i++)
        take_one();
    struct reserve_counts after = reserve_counts();
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
    reach_fresh_memory();
    demand_is_raised_once();
    no_demand_is_raised_while_resting();
    what_is_ready_is_hit(true);
    what_is_ready_is_hit(false);
    for (int i = 0; i < 2000; i++) /* enough in use for a bound of several MiB */
        take_one();
    EXPECT(span_counts().in_use_bytes / 8 > TARGET_MAX);
    target_grows_with_misses_up_to_the_bound();
    target_follows_the_pace_downwards();
    what_is_ready_is_hit(true);
    what_was_refused_comes_later();
    who_overtakes_goes_past();
    goes_on_in_the_next_run();
    unused_reserve_is_purged();
    used_memory_is_not_provided_for();
    large_blocks_are_not_provided_for();
    touching_leaves_content_alone();
    return 0;
}
