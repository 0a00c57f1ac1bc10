/* SPDX-License-Identifier: MIT */
#include "heap/purge_round.h"

#include "base/bits.h"
#include "heap/heap.h"
#include "heap/large.h"
#include "heap/mapping_cache.h"
#include "heap/outbox.h"
#include "heap/purge.h"
#include "heap/stale.h"

#define PIECE_LOOKS 1024u
#define PIECE_HEAPS 64u
#define PIECE_MAPPING_BYTES 1u /* one piece of mapping_unmap_deferred */

/* ---- the steps; each sets `step` when it is done ---- */

static void go_to(struct purge_round *r, enum round_step step)
{
    r->step = step;
    r->at = 0;
}

/* If none had a slow path the program sleeps: nobody is there to fill what they have, and none is taken for idle. */
static void see_heaps(struct purge_round *r)
{
    unsigned total = atomic_load_explicit(&heap_total, memory_order_acquire), first = r->at;
    unsigned end = r->is_in_pieces ? (unsigned)min_size(total, first + PIECE_HEAPS) : total;
    outboxes_send_of(first, end, r->what == purge_force, &r->changed);
    if (r->what != purge_force)
        r->idle_heaps += heap_note_idle(first, end);
    r->at = end;
    if (end < total)
        return;
    if (r->idle_heaps == total)
        heap_forget_idle(total);
    go_to(r, round_stale);
}

/* Apart from the batches, so that no superblock is offline while this waits for a lock and for the system. */
static void purge_stale(struct purge_round *r)
{
    size_t bytes = 0;
    while (round_looks_on(r)) {
        struct superblock *s = superblock_beginning_at(r->at++);
        if (s == NULL || !is_stale(s))
            continue;
        bytes += stale_purge(s, r->what, &r->changed);
        if (r->is_in_pieces)
            break;
        pass_yield();
    }
    span_note_purged(bytes);
    r->bytes += bytes;
    if (r->at == SLICE_END) {
        go_to(r, round_superblocks);
        r->holes_before = purge_holes_bytes();
    }
}

static void see_superblocks(struct purge_round *r)
{
    purge_superblocks(r);
    if (r->at == SLICE_END) {
        purge_note_holes(r);
        go_to(r, round_spans);
        if (r->is_in_pieces)
            span_walk_begin(&r->spans, r->what, true);
    }
}

static void purge_spans(struct purge_round *r)
{
    if (!r->is_in_pieces) {
        r->bytes += span_purge(r->what, 0, &r->changed);
        return go_to(r, round_mappings);
    }
    r->bytes += span_walk_piece(&r->spans);
    if (span_walk_is_over(&r->spans)) {
        span_walk_end(&r->spans);
        r->changed |= r->spans.changed;
        go_to(r, round_mappings);
    }
}

/* In pieces: `at` says whether what is to go has been marked. */
static void purge_mappings(struct purge_round *r)
{
    size_t bytes;
    if (!r->is_in_pieces) {
        bytes = r->what == purge_force ? mapping_trim(0) : mapping_purge(&r->changed);
        go_to(r, round_over);
    } else {
        const bool is_first = r->at++ == 0;
        if (is_first && r->what == purge_force)
            mapping_defer(0);
        else if (is_first)
            mapping_age(&r->changed);
        bytes = mapping_unmap_deferred(PIECE_MAPPING_BYTES);
        if (bytes == 0)
            go_to(r, round_over);
    }
    r->bytes += bytes;
}

/* ---- a round ---- */

void round_begin(struct purge_round *r, enum purge_what what, bool in_pieces)
{
    *r = (struct purge_round){.what = what, .is_in_pieces = in_pieces, .most = SIZE_MAX};
}

void round_go_on(struct purge_round *r)
{
    static void (*const steps[])(struct purge_round *) = {
        [round_heaps] = see_heaps,   [round_stale] = purge_stale,       [round_superblocks] = see_superblocks,
        [round_spans] = purge_spans, [round_mappings] = purge_mappings,
    };
    ASSERT(lock_is_mine(&pass_lock) && !round_is_over(r));
    r->looks_left = PIECE_LOOKS;
    if (pass_goes_on(r->what))
        steps[r->step](r);
    else
        r->step = round_over;
}

/* Up to but without `last`. */
static void go_on_to(struct purge_round *r, enum round_step last)
{
    while (r->step < last)
        round_go_on(r);
}

size_t heap_purge(enum purge_what what, bool *changed)
{
    struct purge_round r;
    round_begin(&r, what, false);
    large_give_deferred();
    pass_begin();
    go_on_to(&r, round_over);
    pass_end();
    if (changed != NULL)
        *changed = r.changed;
    return r.bytes;
}

/* Bytes of free blocks in superblocks that are in use.  Adds to *spans the bytes of superblocks without live blocks,
 * which are about to become spans. */
static size_t free_in_superblocks(size_t *spans)
{
    size_t bytes = 0;
    for (uint32_t slice = 0; (slice = region_slice_from(slice)) != SLICE_END; slice++) {
        const struct superblock *s = superblock_beginning_at(slice);
        if (s == NULL)
            continue;
        unsigned free_blocks = superblock_free_blocks(s);
        if (free_blocks == s->carved)
            *spans += superblock_slices(s) * SLICE_BYTES;
        else
            bytes += (size_t)free_blocks * s->block_bytes;
    }
    return bytes;
}

/* Keeps `pad` bytes as free spans, which serve any size; if there are not as many, as mappings and free blocks, too. */
size_t heap_trim(size_t pad)
{
    struct purge_round r;
    round_begin(&r, purge_force, false);
    large_give_deferred();
    pass_begin();
    go_on_to(&r, round_stale);
    size_t spans = span_counts().dirty_bytes, free_bytes = free_in_superblocks(&spans);
    size_t whole = spans + mapping_cache_bytes();
    r.most = whole < pad ? free_bytes - min_size(free_bytes, pad - whole) : SIZE_MAX;
    go_on_to(&r, round_spans);
    r.bytes += span_purge(purge_force, pad, &r.changed);
    r.bytes += mapping_trim(pad - min_size(pad, spans));
    pass_end();
    return r.bytes;
}
