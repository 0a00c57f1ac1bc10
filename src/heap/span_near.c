/* SPDX-License-Identifier: MIT */
#include "heap/span_near.h"

#include <stdatomic.h>

#include "heap/arena.h"
#include "heap/span.h"
#include "rcs/rcs.h"

#define PLACES 64u
#define NOBODY UINT32_MAX

/* {free span << 32 | first slice of what was given}, of each cid (those far apart share one); 0: nothing.  Hints: the
 * span may be another by now. */
static _Atomic uint64_t last_given[PLACES];
static _Atomic uint32_t giver = NOBODY;
static _Atomic bool are_several;

void span_near_note(uint32_t first, uint32_t span)
{
    const uint32_t place = sync_slot_among(PLACES), before = atomic_load_explicit(&giver, memory_order_relaxed);
    if (before != place && before != NOBODY)
        atomic_store_explicit(&are_several, true, memory_order_relaxed);
    if (before != place)
        atomic_store_explicit(&giver, place, memory_order_relaxed);
    atomic_store_explicit(&last_given[place], (uint64_t)span << 32 | first, memory_order_relaxed);
}

bool span_near_find(size_t slices, uint32_t *span, uint32_t *first)
{
    ASSERT(lock_is_mine(&span_lock));
    const uint64_t given = atomic_load_explicit(&last_given[sync_slot_among(PLACES)], memory_order_relaxed);
    if (given == 0 || !atomic_load_explicit(&are_several, memory_order_relaxed))
        return false;
    *span = (uint32_t)(given >> 32);
    *first = (uint32_t)given;
    const struct slice *s = slice_at(*span);
    if (slice_kind(s) != slice_free || !slice_is_in_bin(s) || s->slices < slices || !arena_is_used(*span) ||
        arena_of(*span) != &arena[span_large])
        return false;
    const uint32_t best = arena_find(&arena[span_large], slices);
    if (arena_is_used(best) && slice_at(best)->slices <= s->slices / 2)
        return false;
    if (*first < *span || *first + slices > (size_t)*span + s->slices)
        *first = *span;
    return true;
}
