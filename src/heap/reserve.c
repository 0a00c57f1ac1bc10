/* SPDX-License-Identifier: MIT */
#include "heap/reserve.h"

#include "heap/arena.h"
#include "os/os.h"

#define TARGET_MIN ((size_t)HUGE_PAGE_SLICES)
/* What lies further ahead has left the caches again when the program comes to it. */
#define TARGET_MAX ((8ul << 20) >> SLICE_SHIFT)


/* All in slices; under span_lock. */
static struct {
    uint32_t front;  /* the next superblock is expected here; SLICE_NONE before there was any */
    uint32_t cursor; /* where making ready goes on */
    size_t target, ready;
    size_t expected; /* to be taken in the time the reserve has to last, if it is known */
    size_t provided, wasted, hit, miss;
    struct os_place demanded_at;
    uint64_t rest_until_ns; /* 0: not resting */
} reserve = {.front = SLICE_NONE, .target = TARGET_MIN, .expected = SIZE_MAX};

static size_t bound(void)
{
    size_t most = min_size(TARGET_MAX, span_count.in_use_bytes >> SLICE_SHIFT >> 3);
    return max_size(TARGET_MIN, min_size(reserve.expected, most));
}

static size_t wanted(void)
{
    return min_size(reserve.target, bound());
}

static bool is_resting(void)
{
    if (reserve.rest_until_ns != 0 && os_now_ns() >= reserve.rest_until_ns)
        reserve.rest_until_ns = 0;
    return reserve.rest_until_ns != 0;
}

void reserve_rest(uint64_t until_ns)
{
    lock_take(&span_lock);
    reserve.rest_until_ns = until_ns;
    lock_release(&span_lock);
}

void reserve_expect(size_t bytes)
{
    lock_take(&span_lock);
    reserve.expected = bytes >> SLICE_SHIFT;
    lock_release(&span_lock);
}

static void enlarge(void)
{
    reserve.target = min_size(reserve.target * 2, bound());
}

void reserve_hurry(void)
{
    lock_take(&span_lock);
    enlarge();
    lock_release(&span_lock);
}

void reserve_follow(const struct arena *a, uint32_t first, size_t slices, size_t have)
{
    if (a != &arena[span_dense])
        return;
    /* Small holes between used superblocks are filled on the way: the front stays where the large stretch is. */
    if (first != reserve.front && have < HUGE_PAGE_SLICES)
        return;
    if (first != reserve.front)
        reserve.cursor = 0;
    reserve.front = first + (uint32_t)slices;
    if (reserve.ready * 2 < wanted() && demand_is_none() && !is_resting()) {
        reserve.demanded_at = os_current_place();
        demand_raise();
    }
}

void reserve_count_taken(uint32_t first, size_t slices)
{
    size_t ready = 0, cold = 0;
    for (struct superblock *s = descriptor_of_slice(first), *end = s + slices; s < end; s++) {
        ready += (s->flags & FLAG_WARM) != 0;
        cold += (s->flags & (FLAG_WARM | FLAG_DIRTY)) == 0;
        __atomic_store_n(&s->flags, s->flags & (uint8_t)~FLAG_WARM, __ATOMIC_RELAXED); /* the manager looks: touch.h */
    }
    reserve.ready -= min_size(ready, reserve.ready); /* a child that forgot its spans has none */
    if (arena_of(first) == &arena[span_dense]) {
        reserve.hit += ready;
        reserve.miss += cold;
    }
}

void reserve_count_wasted(size_t bytes)
{
    if (bytes == 0)
        return;
    reserve.ready -= min_size(bytes >> SLICE_SHIFT, reserve.ready);
    reserve.wasted += bytes >> SLICE_SHIFT;
    reserve.cursor = 0;
}

void reserve_shrink(void)
{
    reserve.target = max_size(TARGET_MIN, reserve.target / 2);
}

/* End of the free stretch that begins at the front; the front itself if there is none (any more). */
static uint32_t stretch_end(void)
{
    struct arena *a = &arena[span_dense];
    if (reserve.front == SLICE_NONE)
        return SLICE_NONE;
    /* The next step of the window is opened early, else its first pages would always be missed. */
    if (reserve.front == a->fresh_first && a->fresh_end - a->fresh_first < reserve.target)
        arena_open(a, a->fresh_end - a->fresh_first + 1);
    if (reserve.front == a->fresh_first)
        return a->fresh_end;
    if (!window_contains(slice_address(reserve.front)) || arena_of(reserve.front) != a)
        return reserve.front;
    const struct superblock *s = descriptor_of_slice(reserve.front);
    return s->kind == slice_free ? reserve.front + (uint32_t)s->span_slices : reserve.front;
}

/* Overtakes a program that has caught up: the page it is about to touch is left to it. */
static void overtake(bool huge)
{
    bool is_first = reserve.cursor == 0;
    uint32_t step = huge ? HUGE_PAGE_SLICES : 1;
    reserve.cursor = (uint32_t)align_up(reserve.front + 1ul, step);
    if (!is_first)
        enlarge();
}

/* Slices from `first` on, up to `stop`, that hold no pages yet. */
static uint32_t cold_run(uint32_t first, uint32_t stop)
{
    uint32_t end = first;
    while (end < stop && (descriptor_of_slice(end)->flags & (FLAG_DIRTY | FLAG_WARM)) == 0)
        end++;
    return end - first;
}

/* The piece that begins with the first cold slice from *at on; 0 if there is none before `end`. */
static uint32_t cold_piece(uint32_t *at, uint32_t end, bool huge)
{
    while (*at < end && cold_run(*at, *at + 1) == 0)
        ++*at;
    size_t border = align_up(*at + 1ul, huge ? HUGE_PAGE_SLICES : 1);
    return *at < end ? cold_run(*at, (uint32_t)min_size(end, border)) : 0;
}

static uint32_t piece_ahead(bool huge)
{
    uint32_t end = stretch_end();
    if (end == reserve.front)
        return 0;
    if (reserve.cursor <= reserve.front)
        overtake(huge);
    return cold_piece(&reserve.cursor, end, huge);
}

/* Where the program goes on when the stretch at the front is used up: the other arena may have opened what follows it. */
static uint32_t piece_of_next_stretch(bool huge, uint32_t *first)
{
    const struct arena *a = &arena[span_dense];
    *first = a->fresh_first;
    bool is_ahead = reserve.front != SLICE_NONE && reserve.front != a->fresh_first;
    return is_ahead ? cold_piece(first, a->fresh_end, huge) : 0;
}

bool reserve_next(bool huge, struct reserve_piece *piece)
{
    uint32_t slices = 0, first = SLICE_NONE;
    lock_take(&span_lock);
    if (reserve.ready < wanted()) {
        slices = piece_ahead(huge);
        first = reserve.cursor;
        if (slices == 0)
            slices = piece_of_next_stretch(huge, &first);
    }
    if (reserve.ready + slices > bound())
        slices = 0;
    if (slices > 0) {
        for (uint32_t i = 0; i < slices; i++)
            descriptor_of_slice(first + i)->flags |= FLAG_WARM;
        *piece = (struct reserve_piece){slice_address(first), (size_t)slices << SLICE_SHIFT, reserve.demanded_at};
        if (first == reserve.cursor)
            reserve.cursor += slices;
        reserve.ready += slices;
        reserve.provided += slices;
    }
    lock_release(&span_lock);
    return slices > 0;
}

struct reserve_counts reserve_counts(void)
{
    return (struct reserve_counts){
        .reserve_bytes = reserve.ready << SLICE_SHIFT,
        .target_bytes = wanted() << SLICE_SHIFT,
        .provided_bytes = reserve.provided << SLICE_SHIFT,
        .wasted_bytes = reserve.wasted << SLICE_SHIFT,
        .hit_bytes = reserve.hit << SLICE_SHIFT,
        .miss_bytes = reserve.miss << SLICE_SHIFT,
    };
}

void reserve_forget(void)
{
    reserve.front = SLICE_NONE;
    reserve.cursor = 0;
    reserve.ready = 0;
    reserve.target = TARGET_MIN;
    reserve.expected = SIZE_MAX;
    reserve.rest_until_ns = 0;
}
