/* SPDX-License-Identifier: MIT
 *
 * Spans in a forked child: frees the slices that threads which are not there had in their hands, and, if the lock was
 * held, rebuilds the bins from the tags of free spans.
 */
#include "heap/arena.h"
#include "heap/prefault_pool.h"
#include "heap/span_cache.h"

static bool is_of_superblock(const struct slice *tail)
{
    const struct slice *s = slice_head(slice_at(slice_number(tail)));
    return (s->kind == slice_superblock || s->kind == slice_quarantine) && s < tail &&
           slice_number(tail) - slice_number(s) < s->slices;
}

/* How many slices the large block that begins here takes; 1 for a slice of anything else that is in use. */
static size_t slices_in_use(const struct slice *s)
{
    switch (s->kind) {
    case slice_superblock:
    case slice_quarantine:
        return 1;
    case slice_tail:
        return is_of_superblock(s);
    case slice_large:
        return s->slices;
    default:
        return 0;
    }
}

/* Frees slices that belong to nothing, and may hold anything. */
static void free_orphans(uint32_t first, size_t slices)
{
    for (size_t i = 0; i < slices; i++) {
        struct slice *s = slice_at(first + (uint32_t)i);
        s->to_head = 0;
        s->kind = slice_unknown;
        s->content = content_used;
        s->is_aged = s->was_zero = false;
    }
    arena_insert(first, slices);
}

static bool is_orphan(uint32_t slice)
{
    const struct slice *s = slice_at(slice);
    return slices_in_use(s) == 0 && s->kind != slice_free && s->kind != slice_hole;
}

static bool is_fresh(const struct arena *a, uint32_t slice)
{
    return slice >= a->fresh_first && slice < a->fresh_end;
}

static size_t orphans_from(uint32_t first)
{
    const struct arena *a = arena_of(first);
    size_t slices = 0;
    for (uint32_t at = first;
         region_slice_from(at) == at && arena_of(at) == a && is_orphan(at) && !is_fresh(a, at); at++)
        slices++;
    return slices;
}

/* Of the tags of a free span only the first slice's kind is trusted: it is stored last and taken away first.  A fresh
 * end that was about to become a free span is found as one or the other. */
void span_recover(bool anew)
{
    span_cache_forget();
    if (anew) {
        for (struct arena *a = arena; a < arena + ARRAY_LEN(arena); a++)
            *a = (struct arena){.fresh_first = a->fresh_first, .fresh_end = a->fresh_end};
        prefault_pool_forget();
    }
    atomic_store(&spans_away, 0); /* in the hands of threads that are not here */
    span_count.in_use_bytes = span_count.dirty_bytes = 0;
    size_t slices;
    for (uint32_t at = region_slice_from(0); at != SLICE_END; at = region_slice_from(at + (uint32_t)slices)) {
        struct slice *s = slice_at(at);
        struct arena *a = arena_of(at);
        if ((slices = slices_in_use(s)) != 0) {
            span_count.in_use_bytes += slices << SLICE_SHIFT;
            continue;
        }
        if (s->kind == slice_hole) {
            slices = 1;
            continue;
        }
        if (s->kind == slice_free) {
            slices = s->slices;
            if (anew)
                arena_insert(at, slices);
            if (is_fresh(a, at + (uint32_t)slices - 1))
                a->fresh_first = a->fresh_end;
        } else if (is_fresh(a, at)) {
            slices = a->fresh_end - at;
            continue;
        } else {
            slices = orphans_from(at);
            free_orphans(at, slices);
        }
        span_count.dirty_bytes += slices_holding(at, slices, content_used) << SLICE_SHIFT;
    }
}
