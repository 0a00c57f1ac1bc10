/* SPDX-License-Identifier: MIT */
#include "heap/prefault_pool.h"

#include "heap/arena.h"
#include "os/os.h"

/* The huge page the program is in, and the next: to ask for that when the first is used up would be too late. */
#define TARGET_MIN ((size_t)2 * HUGE_PAGE_SLICES)
/* What lies further ahead has left the caches again when the program comes to it. */
#define TARGET_MAX ((8ul << 20) >> SLICE_SHIFT)
/* What superblocks have taken before there is a pool: a quarter of it is one piece. */
#define TAKEN_MIN ((size_t)4 * HUGE_PAGE_SLICES)

static _Atomic uint64_t rest_until_ns; /* 0: not resting */

/* All in slices; under span_lock. */
static struct {
    uint32_t front;  /* the next superblock is expected here; SLICE_NONE before there was any */
    uint32_t cursor; /* where prefaulting goes on */
    size_t target, prefaulted;
    size_t expected; /* to be taken in the time the pool has to last, if it is known */
    size_t provided, wasted, hit, miss;
    struct os_place demanded_at;
} pool = {.front = SLICE_NONE, .target = TARGET_MIN, .expected = SIZE_MAX};

/* At first 0, so that nobody is woken. */
static size_t bound(void)
{
    size_t most = min_size(TARGET_MAX, span_count.in_use_bytes >> SLICE_SHIFT >> 3), had = pool.hit + pool.miss;
    return had < TAKEN_MIN ? 0 : min_size(had / 4, max_size(TARGET_MIN, min_size(pool.expected, most)));
}

/* A slow program has a huge page ahead of it: so much less than the bound that another one fits. */
static size_t wanted(void)
{
    return min_size(min_size(pool.target, bound()), max_size(pool.expected, HUGE_PAGE_SLICES));
}

static bool is_resting(void)
{
    uint64_t until_ns = atomic_load_explicit(&rest_until_ns, memory_order_relaxed);
    if (until_ns == 0 || os_now_ns() < until_ns)
        return until_ns != 0;
    atomic_store_explicit(&rest_until_ns, 0, memory_order_relaxed);
    return false;
}

void prefault_pool_rest(uint64_t until_ns)
{
    atomic_store_explicit(&rest_until_ns, until_ns, memory_order_relaxed);
}

bool prefault_pool_is_served(void)
{
    if (atomic_load_explicit(&memory_is_short, memory_order_relaxed))
        return true; /* with nothing */
    return !heap_is_unmanaged() && !is_resting();
}

void prefault_pool_expect(size_t bytes)
{
    lock_take(&span_lock);
    pool.expected = bytes >> SLICE_SHIFT;
    lock_release(&span_lock);
}

void prefault_pool_follow(const struct arena *a, uint32_t first, size_t slices, size_t have)
{
    if (a != &arena[span_dense])
        return;
    /* Small holes between used superblocks are filled on the way, and so are pieces of the pool that the program had to
     * pass: the front stays where the large run is. */
    bool is_at_front = first == pool.front, is_prefaulted = slice_at(first)->content == content_prefaulted;
    if (!is_at_front && !is_prefaulted && have < HUGE_PAGE_SLICES)
        return;
    if (!is_at_front && !is_prefaulted && first != pool.cursor) /* not just past what is being prefaulted */
        pool.cursor = 0;
    if (is_at_front || !is_prefaulted)
        pool.front = first + (uint32_t)slices;
    if (pool.prefaulted * 2 < wanted() && demand_is_none() && !is_resting()) {
        pool.demanded_at = os_current_place();
        demand_raise();
    }
}

void prefault_pool_count_taken(uint32_t first, size_t slices)
{
    ASSERT(lock_is_mine(&span_lock));
    size_t prefaulted = 0, cold = 0;
    for (size_t i = 0; i < slices; i++) {
        struct slice *s = slice_at(first + (uint32_t)i);
        prefaulted += s->content == content_prefaulted;
        cold += s->content == content_zero;
        slice_taken(s);
    }
    pool.prefaulted -= min_size(prefaulted, pool.prefaulted); /* a child that forgot its spans has none */
    if (arena_of(first) == &arena[span_dense]) {
        pool.hit += prefaulted;
        pool.miss += cold;
    }
}

void prefault_pool_count_wasted(size_t bytes)
{
    if (bytes == 0)
        return;
    pool.prefaulted -= min_size(bytes >> SLICE_SHIFT, pool.prefaulted);
    pool.wasted += bytes >> SLICE_SHIFT;
    pool.cursor = 0;
}

void prefault_pool_shrink(void)
{
    pool.target = max_size(TARGET_MIN, pool.target / 2);
}

/* End of the free run that begins at `first`, of spans and then perhaps the fresh end; `first` itself if there is
 * none (any more). */
static uint32_t free_run_end(uint32_t first)
{
    const struct arena *a = &arena[span_dense];
    uint32_t end = first;
    if (arena_free_neighbour(first, a) == first)
        end += slice_at(first)->slices;
    return end == a->fresh_first ? a->fresh_end : end;
}

/* The same from the front on.  The next step of the region is opened early, else its first pages would always be
 * missed. */
static uint32_t front_end(void)
{
    struct arena *a = &arena[span_dense];
    uint32_t end = free_run_end(pool.front);
    if (end != a->fresh_end || end - pool.front >= pool.target)
        return end;
    arena_open(a, a->fresh_end - a->fresh_first + 1);
    return free_run_end(pool.front);
}

/* Overtakes a program that has caught up: the page it is about to touch is left to it. */
static void overtake(uint32_t step)
{
    bool is_first = pool.cursor == 0;
    pool.cursor = (uint32_t)align_up(pool.front + 1ul, step);
    if (!is_first)
        pool.target = min_size(pool.target * 2, bound());
}

static bool is_cold(uint32_t first, uint32_t slices)
{
    return slices_holding(first, slices, content_zero) == slices;
}

/* Moves *at to the first piece of `step` slices that holds no pages yet; false if there is none before `end`.  What
 * lies before a huge page's border is left to the program. */
static bool find_cold(uint32_t *at, uint32_t end, uint32_t step)
{
    *at = (uint32_t)align_up(*at, step);
    while (*at + step <= end && !is_cold(*at, step))
        *at += step;
    return *at + step <= end;
}

/* Moves the cursor to the next piece. */
static bool find_ahead(uint32_t step)
{
    uint32_t end = front_end();
    if (end == pool.front)
        return false;
    if (pool.cursor <= pool.front)
        overtake(step);
    return find_cold(&pool.cursor, end, step);
}

/* Where the program goes on when the run at the front is used up: the other arena may have opened what follows it. */
static bool find_in_next_run(uint32_t step, uint32_t *first)
{
    const struct arena *a = &arena[span_dense];
    *first = a->fresh_first;
    return pool.front != a->fresh_first && find_cold(first, a->fresh_end, step);
}

/* Out of the free run that begins at `run`, in which they are. */
static void take_out(uint32_t run, uint32_t first, uint32_t slices)
{
    ASSERT(lock_is_mine(&span_lock));
    struct arena *a = &arena[span_dense];
    uint32_t fresh = a->fresh_first, end = first + slices;
    if (end > fresh && end <= a->fresh_end) {
        a->fresh_first = end;
        run = arena_insert_merged(fresh, end - fresh);
    }
    arena_cut(run, first, slices);
}

bool prefault_pool_next(bool huge, struct prefault_piece *piece)
{
    bool found = false;
    lock_take(&span_lock);
    huge &= pool.front >= region_huge_from();
    const uint32_t slices = huge ? HUGE_PAGE_SLICES : 1;
    uint32_t first = SLICE_NONE;
    if (pool.front != SLICE_NONE && pool.prefaulted < wanted()) {
        found = find_ahead(slices);
        first = pool.cursor;
        if (!found)
            found = find_in_next_run(slices, &first);
    }
    found &= pool.prefaulted + slices <= bound();
    if (found) {
        take_out(pool.front, first, slices);
        *piece = (struct prefault_piece){slice_address(first), (size_t)slices << SLICE_SHIFT, huge, pool.demanded_at};
        if (first == pool.cursor)
            pool.cursor += slices;
        atomic_fetch_add(&spans_away, 1);
    }
    lock_release(&span_lock);
    return found;
}

bool prefault_pool_take_rest(uint32_t first, size_t slices, uint32_t page, struct prefault_piece *rest)
{
    uint32_t own_end = first + (uint32_t)slices, end = page + HUGE_PAGE_SLICES;
    ASSERT(page % HUGE_PAGE_SLICES == 0 && page >= first && page < own_end);
    lock_take(&span_lock);
    bool is_free = own_end < end && arena_of(page) == &arena[span_dense] && free_run_end(own_end) >= end &&
                   is_cold(page, HUGE_PAGE_SLICES);
    if (is_free) {
        take_out(own_end, own_end, end - own_end);
        size_t bytes = (size_t)(end - own_end) << SLICE_SHIFT;
        *rest = (struct prefault_piece){slice_address(own_end), bytes, .is_huge = true};
        atomic_fetch_add(&spans_away, 1);
    }
    lock_release(&span_lock);
    return is_free;
}

void prefault_pool_hand_over(const struct prefault_piece *piece, bool is_prefaulted)
{
    uint32_t first = slice_of(piece->address);
    size_t slices = piece->bytes >> SLICE_SHIFT;
    lock_take(&span_lock);
    if (is_prefaulted) {
        for (size_t i = 0; i < slices; i++)
            slice_prefaulted(slice_at(first + (uint32_t)i));
        pool.prefaulted += slices;
        pool.provided += slices;
    }
    arena_insert_merged(first, slices);
    atomic_fetch_sub(&spans_away, 1);
    lock_release(&span_lock);
}

struct prefault_pool_counts prefault_pool_counts(void)
{
    return (struct prefault_pool_counts){
        .reserve_bytes = pool.prefaulted << SLICE_SHIFT,
        .target_bytes = wanted() << SLICE_SHIFT,
        .provided_bytes = pool.provided << SLICE_SHIFT,
        .wasted_bytes = pool.wasted << SLICE_SHIFT,
        .hit_bytes = pool.hit << SLICE_SHIFT,
        .miss_bytes = pool.miss << SLICE_SHIFT,
    };
}

void prefault_pool_forget(void)
{
    pool.front = SLICE_NONE;
    pool.cursor = 0;
    pool.prefaulted = 0;
    pool.target = TARGET_MIN;
    pool.expected = SIZE_MAX;
    prefault_pool_rest(0);
}
