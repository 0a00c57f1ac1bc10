/* SPDX-License-Identifier: MIT */
#include "heap/stale.h"

#include "heap/heap.h"
#include "heap/huge.h"
#include "os/os.h"

/* Purged while the heap's slow paths wait: some 20 us, if the system leaves us the processor. */
#define PIECE_BYTES (256ul << 10)

/* Takes the lock of the heap that owns `s`, and returns the heap; NULL if the lock is held and need not be waited for,
 * if no heap owns `s`, or if it is no longer stale. */
static struct heap *lock_owner(struct superblock *s, bool waits)
{
    struct heap *h = superblock_owner(s);
    if (h == NULL)
        return NULL;
    if (waits)
        lock_take(&h->lock);
    else if (!lock_try(&h->lock))
        return NULL;
    if (s->slice.kind == slice_superblock && superblock_owner(s) == h && is_stale(s))
        return h;
    lock_release(&h->lock);
    return NULL;
}

/* The lowest run of units, of a piece at most. */
static unit_set piece_of(const struct superblock *s, unit_set units)
{
    unsigned most = (unsigned)max_size(1, PIECE_BYTES / superblock_unit_bytes(s));
    return units_low_run(units) & units_run(units_first(units), most);
}

static size_t purge_units(const struct superblock *s, unit_set run)
{
    size_t unit = superblock_unit_bytes(s), bytes = (size_t)units_count(run) * unit;
    return os_purge(superblock_start(s) + units_first(run) * unit, bytes) ? bytes : 0;
}

/* One piece of what is stale among *units, which loses what has been looked at, or all if the system refuses.  Returns
 * bytes purged. */
static size_t purge_piece(struct superblock *s, bool waits, unit_set *units)
{
    size_t bytes = 0;
    struct heap *h = lock_owner(s, waits);
    if (h == NULL) {
        *units = 0; /* what is left is for another pass */
        return 0;
    }
    *units &= superblock_stale_units(s);
    if (*units != 0) {
        unit_set run = piece_of(s, *units);
        bytes = purge_units(s, run);
        superblock_note_purged(s, bytes != 0 ? run : 0);
        *units = bytes != 0 ? *units & ~run : 0;
    }
    if (!is_stale(s))
        s->was_stale = false;
    lock_release(&h->lock);
    return bytes;
}

/* Splitting keeps the content, so it need not be done under the lock. */
static void split_huge_pages(const struct superblock *s)
{
    char *start = superblock_start(s), *end = start + superblock_slices(s) * SLICE_BYTES;
    for (char *at = start; at < end; at = (char *)align_up((uintptr_t)at + 1, HUGE_PAGE_BYTES))
        huge_split(at);
}

/* Marks it for the next pass; false if no heap owns it or its heap is busy. */
static bool mark(struct superblock *s)
{
    struct heap *h = lock_owner(s, false);
    if (h == NULL)
        return false;
    s->was_stale = true;
    lock_release(&h->lock);
    return true;
}

size_t stale_purge(struct superblock *s, enum purge_what what, bool *changed)
{
    bool all = what == purge_force;
    if (!all && !s->was_stale) {
        *changed |= mark(s);
        return 0;
    }
    split_huge_pages(s);
    size_t bytes = 0;
    for (unit_set units = ~(unit_set)0; units != 0;)
        bytes += purge_piece(s, all, &units);
    return bytes;
}
