/* SPDX-License-Identifier: MIT
 *
 * Spans before memory is refused: any free slices in a row.  Looks where span.c does not, for the sake of speed or
 * order: at all spans of a bin, at neighbours of the two arenas, at the fresh end and the free span before it, and at
 * the last free span together with what can still be opened behind it.
 *
 * A call looks at all spans if one was given back or cut since the last.
 */
#include "heap/allowance.h"
#include "heap/arena.h"
#include "heap/span_cache.h"

static bool is_free(uint32_t slice)
{
    return region_contains(slice_address(slice)) && slice_at(slice)->kind == slice_free;
}

static bool has_fresh(const struct arena *a)
{
    return a->fresh_first != a->fresh_end;
}

/* Joins a free span and the one behind it, which is of the other arena: from now on it is of the first one's. */
static void join(uint32_t first, uint32_t next)
{
    size_t slices = slice_at(first)->slices, more = slice_at(next)->slices;
    arena_remove(first);
    arena_remove(next);
    for (size_t i = 0; i < more; i++)
        slice_at(next + (uint32_t)i)->is_large = slice_at(first)->is_large;
    arena_insert(first, slices + more);
}

/* Puts all that is free into the bins, in spans as long as can be. */
static void consolidate(void)
{
    static uint64_t insertions; /* by the end of the last time */
    if (arena_insertions == insertions && !has_fresh(&arena[0]) && !has_fresh(&arena[1]))
        return;
    for (struct arena *a = arena; a < arena + ARRAY_LEN(arena); a++) {
        uint32_t first = a->fresh_first;
        size_t have = a->fresh_end - first;
        a->fresh_first = a->fresh_end = 0;
        if (have > 0)
            arena_insert_merged(first, have);
    }
    for (uint32_t slice = region_slice_from(0); slice != SLICE_END; slice = region_slice_from(slice + 1)) {
        if (slice_at(slice)->kind != slice_free)
            continue;
        uint32_t next;
        while (is_free(next = slice + slice_at(slice)->slices))
            join(slice, next);
        slice = next - 1;
    }
    insertions = arena_insertions;
}

/* The shortest free span that has room, so that the others stay long; SLICE_NONE if there is none. */
static uint32_t find(size_t slices, size_t align_slices)
{
    uint32_t best = SLICE_NONE;
    for (const struct arena *a = arena; a < arena + ARRAY_LEN(arena); a++) {
        const uint32_t found = arena_find_aligned(a, slices, align_slices, SIZE_MAX);
        if (best == SLICE_NONE || (found != SLICE_NONE && slice_at(found)->slices < slice_at(best)->slices))
            best = found;
    }
    return best;
}

/* The first slice of the free span at the end of the region; the end itself if it is in use. */
static uint32_t free_end(void)
{
    uint32_t end = region_end(), run = end > 0 ? arena_free_neighbour(end - 1, arena_of(end - 1)) : SLICE_NONE;
    return run != SLICE_NONE ? run : end;
}

/* Opens what the free end lacks of `slices`; elsewhere if it cannot be there. */
static bool open_missing(size_t slices, size_t align_slices)
{
    if (!arena_open(&arena[span_large], arena_aligned_from(free_end(), align_slices) + slices - region_end()))
        return false;
    consolidate();
    return true;
}

bool span_squeeze(size_t slices, size_t align_slices, uint32_t *first)
{
    const int tries = 3; /* what is opened may lie elsewhere than hoped */
    if (slices + align_slices > REGION_SLICES_MAX)
        return false;
    span_cache_purge(true, &(bool){false});
    lock_take(&span_lock);
    consolidate();
    uint32_t found = find(slices, align_slices);
    for (int i = 0; found == SLICE_NONE && i < tries && open_missing(slices, align_slices); i++)
        found = find(slices, align_slices);
    if (found != SLICE_NONE) {
        *first = arena_aligned_from(found, align_slices);
        arena_cut(found, *first, slices);
        span_count_taken(*first, slices);
    }
    lock_release(&span_lock);
    return found != SLICE_NONE;
}

bool span_extend_squeezed(uint32_t end, size_t more)
{
    span_cache_purge(true, &(bool){false});
    lock_take(&span_lock);
    consolidate();
    size_t have = is_free(end) ? slice_at(end)->slices : 0;
    if (have < more && end + have == region_end() && open_missing(more, 1))
        have = is_free(end) ? slice_at(end)->slices : 0;
    if (have >= more) {
        arena_cut(end, end, more);
        allowance_promise(span_count_taken(end, more));
    }
    lock_release(&span_lock);
    return have >= more;
}
