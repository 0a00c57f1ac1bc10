/* SPDX-License-Identifier: MIT */
#include "heap/span.h"

#include "heap/allowance.h"
#include "heap/ample.h"
#include "heap/arena.h"
#include "heap/huge.h"
#include "heap/huge_policy.h"
#include "heap/large.h"
#include "heap/mapping_cache.h"
#include "heap/mapping_table.h"
#include "heap/prefault.h"
#include "heap/prefault_pool.h"
#include "heap/span_cache.h"
#include "heap/span_near.h"
#include "os/os.h"

#define SPAN_DIRTY_FLOOR (64ul << 20)
#define SPAN_PURGE_MIN   (2ul << 20 >> SLICE_SHIFT)

/* ---- taking ---- */

/* For a program that fills its large blocks a page that is there is worth more than one that is zero: the free span
 * that lies before the fresh end is lengthened, instead of left behind as too short.  SLICE_NONE if none lies there. */
static uint32_t take_lengthened(struct arena *a, size_t slices)
{
    uint32_t last = arena_last(a);
    if (a != &arena[span_large] || last == SLICE_NONE || !huge_policy_expects_full(slices << SLICE_SHIFT))
        return SLICE_NONE;
    size_t have = slice_at(last)->slices, more = slices - min_size(slices, have);
    if (a->fresh_end - a->fresh_first < more && (!arena_open(a, more) || arena_last(a) != last))
        return SLICE_NONE; /* the region went on elsewhere */
    arena_cut(last, last, slices - more);
    a->fresh_first += (uint32_t)more;
    return last;
}

/* A free span of `least` slices or more that has pages; SLICE_NONE if there is none. */
static uint32_t find_used(const struct arena *a, size_t least)
{
    if (span_count.dirty_bytes < least << SLICE_SHIFT)
        return SLICE_NONE;
    uint32_t first = arena_find_used(a, least);
    return arena_is_used(first) ? first : SLICE_NONE;
}

/* The front of one, of which there were *have. */
static uint32_t cut_used(const struct arena *a, size_t least, size_t slices, size_t *have)
{
    uint32_t first = find_used(a, least);
    if (first == SLICE_NONE)
        return SLICE_NONE;
    *have = slice_at(first)->slices;
    arena_cut(first, first, slices);
    return first;
}

/* What has pages comes before what would need new ones, even if it was used for the other use (decision 29).  Not what
 * is short: large blocks and superblocks would mix everywhere. */
static uint32_t take_of_other(const struct arena *a, size_t slices)
{
    const struct arena *other = &arena[a == &arena[span_dense] ? span_large : span_dense];
    return cut_used(other, max_size(slices, HUGE_PAGE_SLICES), slices, &(size_t){0});
}

/* `slices` slices from the bins or the fresh end, wherever they lie. */
static uint32_t take_anywhere(struct arena *a, size_t slices)
{
    uint32_t first = a == &arena[span_dense] ? arena_find_used(a, slices) : arena_find(a, slices), others;
    if (!arena_is_used(first) && (others = take_of_other(a, slices)) != SLICE_NONE)
        return others;
    if (first != SLICE_NONE) {
        size_t have = slice_at(first)->slices;
        arena_cut(first, first, slices);
        prefault_pool_follow(a, first, slices, have);
        return first;
    }
    if ((first = take_lengthened(a, slices)) != SLICE_NONE)
        return first;
    if (a->fresh_end - a->fresh_first < slices && !arena_open(a, slices))
        return SLICE_NONE;
    first = a->fresh_first;
    prefault_pool_follow(a, first, slices, a->fresh_end - first);
    a->fresh_first += (uint32_t)slices;
    return first;
}

static uint32_t take_near(size_t slices)
{
    uint32_t span, first;
    if (!span_near_find(slices, &span, &first))
        return SLICE_NONE;
    arena_cut(span, first, slices);
    return first;
}

/* Aligned slices of a span that has no room for them wherever they lie: what was aligned before and given back. */
static uint32_t take_aligned(const struct arena *a, size_t slices, size_t align_slices)
{
    const size_t looks = 8; /* in each bin */
    const uint32_t span = arena_find_aligned(a, slices, align_slices, looks);
    if (span == SLICE_NONE)
        return SLICE_NONE;
    const uint32_t first = arena_aligned_from(span, align_slices);
    arena_cut(span, first, slices);
    return first;
}

/* So many more were taken that some of them begin aligned; the others go back. */
static uint32_t align(uint32_t at, size_t slices, size_t align_slices)
{
    const uint32_t first = arena_aligned_from(at, align_slices), head = first - at,
                   tail = (uint32_t)(align_slices - 1) - head;
    if (tail > 0)
        arena_insert_merged(first + (uint32_t)slices, tail);
    if (head > 0)
        arena_insert_merged(at, head);
    return first;
}

static uint32_t take_here(enum span_use use, bool near, size_t slices, size_t align_slices)
{
    const size_t all = slices + align_slices - 1;
    uint32_t at = align_slices > 1 ? take_aligned(&arena[use], slices, align_slices) : SLICE_NONE;
    if (at != SLICE_NONE)
        return at;
    at = near ? take_near(all) : SLICE_NONE;
    if (at == SLICE_NONE)
        at = take_anywhere(&arena[use], all);
    if (at == SLICE_NONE) /* no more address space or memory: take from the other arena */
        at = take_anywhere(&arena[!use], all);
    return at != SLICE_NONE && align_slices > 1 ? align(at, slices, align_slices) : at;
}

static bool take(enum span_use use, bool near, size_t slices, size_t align_slices, uint32_t *first)
{
    if (slices + align_slices - 1 > REGION_SLICES_MAX)
        return false;
    lock_take(&span_lock);
    const uint32_t at = take_here(use, near, slices, align_slices);
    if (at != SLICE_NONE) {
        const size_t new_bytes = span_count_taken(at, slices);
        if (near) /* a superblock's are counted as it is carved */
            allowance_promise(new_bytes);
        *first = at;
    }
    lock_release(&span_lock);
    if (at != SLICE_NONE && use == span_dense)
        prefault_own(at, slices);
    return at != SLICE_NONE;
}

bool span_take(enum span_use use, size_t slices, size_t align_slices, uint32_t *first)
{
    return take(use, false, slices, align_slices, first);
}

bool span_take_used(enum span_use use, size_t slices, uint32_t *first)
{
    size_t have;
    if (span_dirty_bytes() < slices << SLICE_SHIFT)
        return false; /* a program that only grows takes no lock for this */
    lock_take(&span_lock);
    *first = cut_used(&arena[use], slices, slices, &have);
    if (*first != SLICE_NONE)
        prefault_pool_follow(&arena[use], *first, slices, have);
    else
        *first = cut_used(&arena[!use], slices, slices, &have);
    if (*first != SLICE_NONE)
        span_count_taken(*first, slices);
    lock_release(&span_lock);
    if (*first != SLICE_NONE && use == span_dense)
        prefault_own(*first, slices);
    return *first != SLICE_NONE;
}

bool span_is_there(size_t slices)
{
    if (span_dirty_bytes() < slices << SLICE_SHIFT)
        return false;
    lock_take(&span_lock);
    const bool is = find_used(&arena[span_large], slices) != SLICE_NONE;
    lock_release(&span_lock);
    return is;
}

bool span_take_block(size_t slices, size_t align_slices, uint32_t *first)
{
    return take(span_large, true, slices, align_slices, first);
}

bool span_extend(uint32_t end, size_t more)
{
    lock_take(&span_lock);
    struct arena *a = arena_of(end - 1);
    bool is_fresh = end == a->fresh_first && a->fresh_end - end >= more;
    bool is_free = arena_free_neighbour(end, a) == end && slice_at(end)->slices >= more;
    if (is_fresh)
        a->fresh_first += (uint32_t)more;
    else if (is_free)
        arena_cut(end, end, more);
    if (is_fresh || is_free)
        allowance_promise(span_count_taken(end, more));
    lock_release(&span_lock);
    return is_fresh || is_free;
}

size_t span_used_slices(uint32_t first, size_t slices)
{
    while (slices > 0 && slice_at(first + (uint32_t)slices - 1)->content != content_used)
        slices--;
    return slices;
}

bool span_is_zero(uint32_t first, size_t slices)
{
    return span_used_slices(first, slices) == 0;
}

/* ---- giving ---- */

/* Splits the huge pages that it shares with neighbours: to purge a part of a whole one frees nothing. */
static bool purge_now(void *start, size_t bytes)
{
    void *part[2];
    for (unsigned count = huge_parts(start, bytes, part), i = 0; i < count; i++)
        huge_split(part[i]);
    return os_purge(start, bytes);
}

void span_await_away(void)
{
    const uint64_t moment_ns = 100000;
    for (int i = 0; i < 100 && atomic_load(&spans_away) != 0; i++)
        os_sleep(moment_ns);
}

/* True if more would be free than may be kept (span.h), were so many bytes given. */
static bool would_be_crowded(size_t bytes)
{
    ASSERT(lock_is_mine(&span_lock));
    size_t dirty = span_count.dirty_bytes + bytes, in_use = span_count.in_use_bytes - bytes;
    size_t kept = max_size(SPAN_DIRTY_FLOOR, region_opened_bytes() / 4);
    if (!atomic_load_explicit(&unmap_is_async, memory_order_relaxed))
        kept = max_size(kept, in_use / 2);
    return dirty > kept && !ample_for(dirty + mapping_cache_bytes(), in_use + mapping_table_bytes());
}

static uint32_t give(uint32_t first, size_t slices, bool is_aged)
{
    CHECK(!slice_is_in_bin(slice_at(first)) && !slice_is_in_bin(slice_at(first + (uint32_t)slices - 1)));
    for (size_t i = 0; i < slices; i++)
        slice_given(slice_at(first + (uint32_t)i), is_aged);
    lock_take(&span_lock);
    span_count.in_use_bytes -= slices << SLICE_SHIFT;
    span_count.dirty_bytes += slices << SLICE_SHIFT;
    const uint32_t span = arena_insert_merged(first, slices);
    lock_release(&span_lock);
    return span;
}

void span_give(uint32_t first, size_t slices)
{
    give(first, slices, false);
}

void span_give_block(uint32_t first, size_t slices)
{
    span_near_note(first, give(first, slices, false));
}

void span_give_aged(uint32_t first, size_t slices)
{
    give(first, slices, true);
}

void span_give_empty(uint32_t first, size_t slices)
{
    for (size_t i = 0; i < slices; i++) {
        slice_given(slice_at(first + (uint32_t)i), false);
        slice_purged(slice_at(first + (uint32_t)i));
    }
    huge_note_purged(slice_address(first), slices << SLICE_SHIFT);
    lock_take(&span_lock);
    span_count.in_use_bytes -= slices << SLICE_SHIFT;
    arena_insert_merged(first, slices);
    lock_release(&span_lock);
}

bool span_give_if_crowded(uint32_t first, size_t slices)
{
    const size_t bytes = slices << SLICE_SHIFT;
    if (slices < SPAN_PURGE_MIN)
        return false;
    lock_take(&span_lock);
    const bool is_crowded = would_be_crowded(bytes);
    lock_release(&span_lock);
    if (!is_crowded)
        return false;
    atomic_fetch_add(&spans_away, 1);
    const bool is_purged = purge_now(slice_address(first), bytes);
    if (is_purged) {
        span_give_empty(first, slices);
        span_note_purged(bytes);
    }
    atomic_fetch_sub(&spans_away, 1);
    return is_purged;
}

void span_give_freed(uint32_t first, size_t slices)
{
    if (!span_give_if_crowded(first, slices))
        span_give(first, slices);
}

size_t span_passed(uint32_t slice)
{
    const struct slice *s = slice_at(slice);
    switch (slice_kind(s)) {
    case slice_superblock:
        return ((const struct superblock *)s)->has_lent ? 1 : max_size(1, s->slices);
    case slice_large:
    case slice_kept:
        return max_size(1, __atomic_load_n(&s->slices, __ATOMIC_RELAXED));
    default:
        return 1;
    }
}
