/* SPDX-License-Identifier: MIT */
#include "heap/arena.h"

struct lock span_lock = LOCK_FREE(rank_span);
struct arena arena[2];
uint64_t arena_insertions;
struct span_counts span_count;
_Atomic unsigned spans_away;

struct arena *arena_of(uint32_t slice)
{
    return &arena[slice_at(slice)->is_large ? span_large : span_dense];
}

size_t slices_holding(uint32_t first, size_t slices, enum content content)
{
    size_t count = 0;
    for (size_t i = 0; i < slices; i++)
        count += slice_at(first + (uint32_t)i)->content == content;
    return count;
}

/* ---- bins ---- */

unsigned bin_of(size_t slices)
{
    ASSERT(slices > 0);
    if (slices <= BIN_EXACT)
        return (unsigned)slices - 1;
    unsigned e = top_bit(slices);
    return BIN_EXACT + (e - 5) * 4 + ((unsigned)(slices >> (e - 2)) & 3);
}

void arena_insert(uint32_t first, size_t slices)
{
    ASSERT(lock_is_mine(&span_lock));
    struct slice *s = slice_at(first), *end = slice_at(first + (uint32_t)slices - 1);
    struct arena *a = arena_of(first);
    ASSERT(slices > 0);
    unsigned bin = bin_of(slices);
    if (slices > 1) {
        end->first = first;
        slice_become(end, slice_free_end);
    }
    s->slices = (uint32_t)slices;
    slice_list_insert(&a->bin_head[bin], s);
    a->bin_used[bin / 64] |= 1ull << (bin % 64);
    slice_become(s, slice_free); /* last: span_recover goes by it */
    arena_insertions++;
}

void arena_remove(uint32_t first)
{
    ASSERT(lock_is_mine(&span_lock));
    struct slice *s = slice_at(first), *end = slice_at(first + s->slices - 1);
    struct arena *a = arena_of(first);
    CHECK(s->kind == slice_free); /* else it is somebody's */
    unsigned bin = bin_of(s->slices);
    slice_list_remove(&a->bin_head[bin], s);
    if (a->bin_head[bin] == 0)
        a->bin_used[bin / 64] &= ~(1ull << (bin % 64));
    slice_become(end, slice_unknown);
    slice_become(s, slice_unknown);
}

void arena_cut(uint32_t span, uint32_t at, size_t slices)
{
    size_t have = slice_at(span)->slices, head = at - span, tail = have - head - slices;
    ASSERT(at >= span && head + slices <= have);
    arena_remove(span);
    if (head > 0)
        arena_insert(span, head);
    if (tail > 0)
        arena_insert(at + (uint32_t)slices, tail);
}

unsigned bin_next(const struct arena *a, unsigned bin)
{
    for (unsigned i = bin / 64; i < ARRAY_LEN(a->bin_used); i++) {
        uint64_t used = a->bin_used[i] & (i == bin / 64 ? ~0ull << (bin % 64) : ~0ull);
        if (used != 0)
            return i * 64 + low_bit(used);
    }
    return BIN_COUNT;
}

/* The spans of the first bin differ in length, and may be too short: a few are looked at. */
uint32_t arena_find(const struct arena *a, size_t slices)
{
    ASSERT(lock_is_mine(&span_lock));
    const unsigned look = 8;
    unsigned bin = bin_of(slices);
    uint32_t at = a->bin_head[bin] - 1;
    for (unsigned i = 0; at != SLICE_NONE && i < look; i++, at = slice_at(at)->next)
        if (slice_at(at)->slices >= slices)
            return at;
    if (bin + 1 >= BIN_COUNT)
        return SLICE_NONE;
    bin = bin_next(a, bin + 1);
    return bin == BIN_COUNT ? SLICE_NONE : a->bin_head[bin] - 1;
}

bool arena_is_used(uint32_t first)
{
    return first != SLICE_NONE && slice_at(first)->content == content_used;
}

uint32_t arena_aligned_from(uint32_t first, size_t align_slices)
{
    return slice_of((void *)align_up((uintptr_t)slice_address(first), align_slices << SLICE_SHIFT));
}

uint32_t arena_find_aligned(const struct arena *a, size_t slices, size_t align_slices, size_t most)
{
    uint32_t best = SLICE_NONE;
    for (unsigned bin = bin_next(a, bin_of(slices)); best == SLICE_NONE && bin < BIN_COUNT;
         bin = bin + 1 < BIN_COUNT ? bin_next(a, bin + 1) : BIN_COUNT) {
        uint32_t at = a->bin_head[bin] - 1;
        for (size_t i = 0; at != SLICE_NONE && i < most; at = slice_at(at)->next, i++) {
            const size_t have = slice_at(at)->slices, head = arena_aligned_from(at, align_slices) - at;
            if (head + slices <= have && (best == SLICE_NONE || have < slice_at(best)->slices))
                best = at;
        }
    }
    return best;
}

uint32_t arena_find_used(const struct arena *a, size_t slices)
{
    uint32_t found = arena_find(a, slices);
    if (found == SLICE_NONE || arena_is_used(found))
        return found;
    for (unsigned bin = bin_of(slice_at(found)->slices) + 1; (bin = bin_next(a, bin)) < BIN_COUNT; bin++)
        if (arena_is_used(a->bin_head[bin] - 1))
            return a->bin_head[bin] - 1;
    return found;
}

/* ---- neighbours, and fresh memory ---- */

uint32_t arena_free_neighbour(uint32_t slice, const struct arena *a)
{
    if (!region_contains(slice_address(slice)) || arena_of(slice) != a)
        return SLICE_NONE;
    const struct slice *s = slice_at(slice);
    return s->kind == slice_free ? slice : s->kind == slice_free_end ? s->first : SLICE_NONE;
}

uint32_t arena_insert_merged(uint32_t first, size_t slices)
{
    ASSERT(lock_is_mine(&span_lock));
    const struct arena *a = arena_of(first);
    uint32_t before = arena_free_neighbour(first - 1, a), after = arena_free_neighbour(first + (uint32_t)slices, a);
    if (after != SLICE_NONE) {
        slices += slice_at(after)->slices;
        arena_remove(after);
    }
    if (before != SLICE_NONE) {
        slices += slice_at(before)->slices;
        arena_remove(before);
        first = before;
    }
    arena_insert(first, slices);
    return first;
}

uint32_t arena_last(const struct arena *a)
{
    return arena_free_neighbour(a->fresh_first - 1, a);
}

bool arena_open(struct arena *a, size_t slices)
{
    ASSERT(lock_is_mine(&span_lock));
    size_t have = a->fresh_end - a->fresh_first, count;
    uint32_t first;
    size_t missing = slices > have ? slices - have : 0;
    if (!region_open(missing, a == &arena[span_dense], &first, &count))
        return false;
    if (a == &arena[span_large])
        for (size_t i = 0; i < count; i++)
            slice_at(first + (uint32_t)i)->is_large = true;
    if (first == a->fresh_end && have > 0) {
        a->fresh_end += (uint32_t)count;
        return true;
    }
    if (have > 0)
        arena_insert_merged(a->fresh_first, have); /* the region went on elsewhere */
    a->fresh_first = first;
    a->fresh_end = first + (uint32_t)count;
    return count >= slices || arena_open(a, slices);
}
