/* SPDX-License-Identifier: MIT
 *
 * Giving the pages of free spans back.  Spans are taken out of the bins in batches, so that the program goes on taking
 * others while the system takes the pages.
 */
#include "heap/arena.h"
#include "heap/give_back.h"
#include "heap/huge.h"
#include "heap/pass.h"
#include "heap/purge.h"
#include "heap/reserve.h"
#include "os/os.h"

#define BATCH 64
#define BATCH_SLICES (64ul << 20 >> SLICE_SHIFT)
#define FRESH_PIECE_SLICES (4ul << 20 >> SLICE_SHIFT)
#define FLAGS_RESIDENT (FLAG_DIRTY | FLAG_WARM)

struct span {
    uint32_t first;
    uint32_t slices;
};

struct batch {
    unsigned count;
    size_t slices, most;
    struct span span[BATCH];
};

void span_note_returned(uint32_t first, size_t slices)
{
    size_t dirty = slices_with(first, slices, FLAG_DIRTY) << SLICE_SHIFT;
    size_t warm = slices_with(first, slices, FLAG_WARM) << SLICE_SHIFT;
    for (struct superblock *s = descriptor_of_slice(first), *end = s + slices; s < end; s++)
        s->flags &= (uint8_t)~FLAGS_RESIDENT;
    span_count.dirty_bytes -= dirty;
    reserve_count_wasted(warm);
    span_note_purged(dirty + warm);
}

/* Of a span from its first page that is there, and at most as much as the batch has room for; the rest stays. */
static void take_out(struct batch *b, uint32_t first)
{
    size_t have = descriptor_of_slice(first)->span_slices;
    uint32_t bare = 0;
    while (slices_with(first + bare, 1, FLAGS_RESIDENT) == 0)
        bare++;
    size_t slices = min_size(have - bare, b->most - b->slices), rest = have - bare - slices;
    arena_remove(first);
    if (bare > 0)
        arena_insert(first, bare, true);
    if (rest > 0)
        arena_insert(first + bare + (uint32_t)slices, rest, true);
    b->span[b->count++] = (struct span){first + bare, (uint32_t)slices};
    b->slices += slices;
}

/* To be given back by this pass: it holds pages and has been free since the last one, or anything does. */
static bool is_wanted(uint32_t at, enum purge_what what)
{
    const struct superblock *s = descriptor_of_slice(at);
    if (slices_with(at, s->span_slices, FLAGS_RESIDENT) == 0)
        return false;
    if (what == purge_everything)
        return true;
    bool is_large = s->span_slices * 2 >= HUGE_PAGE_SLICES;
    return (s->flags & FLAG_AGED) != 0 && (what == purge_leftover || is_large || huge_is_worth_splitting(at));
}

/* Fills the batch. */
static void gather(struct batch *b, const struct arena *a, enum purge_what what)
{
    for (unsigned bin = bin_next(a, 0); bin < BIN_COUNT; bin = bin + 1 < BIN_COUNT ? bin_next(a, bin + 1) : BIN_COUNT)
        for (uint32_t next, at = a->bin_head[bin] - 1; at != SLICE_NONE; at = next) {
            next = descriptor_of_slice(at)->next;
            if (!is_wanted(at, what))
                continue;
            if (b->count == BATCH || b->slices >= b->most)
                return;
            take_out(b, at);
        }
}

/* Runs of slices that hold pages. */
static void add_runs(struct give_back *pages, const struct span *span)
{
    for (uint32_t i = 0, run; i < span->slices; i += run + 1) {
        for (run = 0; i + run < span->slices && slices_with(span->first + i + run, 1, FLAGS_RESIDENT) != 0;)
            run++;
        if (run > 0)
            give_back_add(pages, slice_address(span->first + i), (size_t)run << SLICE_SHIFT);
    }
}

/* Returns the bytes given back; a refused batch stays as it was, and *refused is set. */
static size_t purge_batch(const struct batch *b, bool *refused)
{
    struct give_back pages = {0};
    for (unsigned i = 0; i < b->count; i++)
        add_runs(&pages, &b->span[i]);
    give_back_flush(&pages);
    lock_take(&span_lock);
    for (unsigned i = 0; i < b->count; i++) {
        if (!pages.refused)
            span_note_returned(b->span[i].first, b->span[i].slices);
        arena_insert_merged(b->span[i].first, b->span[i].slices, true);
    }
    lock_release(&span_lock);
    *refused |= pages.refused;
    return pages.refused ? 0 : pages.bytes;
}

/* What is left is for the next pass.  Returns true if there is any for one like this. */
static bool mark_aged(const struct arena *a, enum purge_what what)
{
    bool any = false;
    for (unsigned bin = bin_next(a, 0); bin < BIN_COUNT; bin = bin + 1 < BIN_COUNT ? bin_next(a, bin + 1) : BIN_COUNT)
        for (uint32_t at = a->bin_head[bin] - 1; at != SLICE_NONE; at = descriptor_of_slice(at)->next) {
            struct superblock *s = descriptor_of_slice(at);
            s->flags |= FLAG_AGED;
            any |= is_wanted(at, what);
        }
    return any;
}

/* The reserve at the fresh end of an arena, which is in no bin: one piece of it, with span_lock held, since only
 * that keeps the program from taking it meanwhile.  0 if there is none, or none to be given back yet. */
static size_t purge_fresh_piece(struct arena *a, bool all, bool *changed)
{
    uint32_t first = a->fresh_first;
    while (first < a->fresh_end && slices_with(first, 1, FLAG_WARM) == 0)
        first++;
    size_t slices = min_size(a->fresh_end - first, FRESH_PIECE_SLICES), warm = slices_with(first, slices, FLAG_WARM);
    if (warm == 0)
        return 0;
    if (!all && a->fresh_seen != a->fresh_first) {
        *changed = true;
        return 0;
    }
    if (!os_purge(slice_address(first), slices << SLICE_SHIFT))
        return 0;
    span_note_returned(first, slices);
    return warm << SLICE_SHIFT;
}

static size_t purge_fresh(struct arena *a, bool all, bool *changed)
{
    size_t purged = 0, piece;
    do {
        lock_take(&span_lock);
        piece = purge_fresh_piece(a, all, changed);
        if (piece == 0)
            a->fresh_seen = a->fresh_first;
        lock_release(&span_lock);
        purged += piece;
    } while (piece > 0);
    return purged;
}

size_t span_purge(enum purge_what what, bool *changed)
{
    struct reserve_counts reserve = reserve_counts();
    /* No more than there is now: other threads may go on freeing as fast as this one gives back. */
    size_t purged = 0, dirty = span_counts().dirty_bytes, most = dirty + reserve.reserve_bytes;
    if (purge_spans_keep > 0)
        most = dirty - min_size(dirty, purge_spans_keep);
    bool refused = false;
    struct batch b;
    do {
        pass_yield();
        b = (struct batch){.most = min_size(BATCH_SLICES, (most - purged) >> SLICE_SHIFT)};
        lock_take(&span_lock);
        for (unsigned i = 0; i < ARRAY_LEN(arena); i++)
            gather(&b, &arena[i], what);
        lock_release(&span_lock);
        purged += purge_batch(&b, &refused);
    } while (b.count > 0 && !refused && purged < most && purge_goes_on(what));
    for (unsigned i = 0; i < ARRAY_LEN(arena); i++)
        purged += purge_fresh(&arena[i], what == purge_everything, changed);
    lock_take(&span_lock);
    for (unsigned i = 0; i < ARRAY_LEN(arena); i++)
        *changed |= mark_aged(&arena[i], what) && !refused;
    if (reserve_counts().wasted_bytes != reserve.wasted_bytes)
        reserve_shrink();
    lock_release(&span_lock);
    return purged;
}
