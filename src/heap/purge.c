/* SPDX-License-Identifier: MIT */
#include "heap/purge.h"

#include "base/bits.h"
#include "heap/audit.h"
#include "heap/demand.h"
#include "heap/purge_batch.h"
#include "heap/heap.h"
#include "heap/huge.h"
#include "heap/large.h"
#include "heap/lend.h"
#include "heap/mapping_cache.h"
#include "heap/outbox.h"
#include "heap/pass.h"
#include "heap/purge_round.h"
#include "heap/span.h"
#include "os/os.h"

#define BATCH 32
/* Of a round in pieces, a batch is complete with a superblock that makes it so many slices: their lists are walked, and
 * their pages purged, in 200 to 700 us. */
#define PIECE_SLICES (1ul << 20 >> SLICE_SHIFT)
#define SEEN_BITS (SEEN_PURGED | SEEN_LENT)
#define GATHER_ALL_NS 100000000ull

/* Superblocks of whichever heaps that were taken offline; one fence serves all of them. */
struct batch {
    bool is_own; /* each was given up by sections of its heap, which the caller runs on: no fence is needed */
    unsigned count;
    bool lends;
    bool gave_spans; /* the next pass over the spans will find them */
    struct purge_batch pages;
};

/* Those of the batch; in a pass, and none between two batches.  Not in it, for the stack may be small. */
static struct offline {
    struct superblock *superblock; /* NULL: found damaged */
    struct heap *heap;
    unit_set units; /* uncarved, their pages to be purged */
} offline[BATCH];

/* ---- which ---- */

/* What the lists look like, and how many blocks there are, in 14 bits. */
static uint16_t look_of(const struct superblock *s)
{
    uint64_t lists = superblock_freelist(s) * 0x9e3779b97f4a7c15ull ^ s->carved * 0x165667b19e3779f9ull ^
                     atomic_load_explicit(&s->x_remote, memory_order_relaxed) * 0xc2b2ae3d27d4eb4full;
    return (uint16_t)(lists >> 48) & (uint16_t)~SEEN_BITS;
}

/* True if the lists look as they did when all of this was seen. */
static bool looks_as(const struct superblock *s, unsigned seen)
{
    return (s->seen & seen) == seen && (s->seen & ~SEEN_BITS) == look_of(s);
}

static size_t bytes_of(const struct superblock *s, unit_set units)
{
    return (size_t)units_count(units) * superblock_unit_bytes(s);
}

/* No block of it is in the program's hands. */
static bool is_all_free(const struct superblock *s)
{
    return superblock_free_blocks(s) == s->carved;
}

/* Room for so many blocks has pages: those that are free, and where none exists any more or yet.  (What is stale in the
 * arena for large blocks is stale.h's.) */
static unsigned blocks_with_pages(const struct superblock *s)
{
    const size_t stale_bytes = s->slice.is_large ? 0 : bytes_of(s, superblock_stale_units(s));
    return superblock_free_blocks(s) + (unsigned)(stale_bytes / s->block_bytes);
}

/* Of a pass that purges everything, which may look for *most bytes of free blocks more.  Only a superblock that has a
 * unit's worth of free blocks can have a wholly free unit, and one whose lists look as they did when it was purged has
 * none.  So a program that calls malloc_trim again and again pays for what has changed. */
static bool may_have_free_pages(const struct superblock *s, unsigned free_blocks, size_t *most)
{
    size_t bytes = (size_t)free_blocks * s->block_bytes;
    if (is_all_free(s))
        return true; /* it becomes a span, which may stay */
    if (bytes > *most || looks_as(s, SEEN_PURGED) || bytes < superblock_unit_bytes(s))
        return false;
    *most -= bytes;
    return true;
}

/* True if it is worth taking offline now.  The descriptor may be changing: a wrong answer only costs time. */
static bool is_wanted(struct superblock *s, enum purge_what what, size_t *most, bool *changed)
{
    const unsigned free_blocks = blocks_with_pages(s);
    if (free_blocks == 0)
        return false;
    if (what == purge_force)
        return may_have_free_pages(s, free_blocks, most);
    if (free_blocks * 4 < s->carved && (what != purge_idle || s->block_bytes * 2u < os_page_bytes))
        return false;
    uint16_t look = look_of(s);
    if ((s->seen & ~SEEN_BITS) != look) {
        s->seen = look;
        *changed = true;
        return false;
    }
    if ((s->seen & SEEN_PURGED) != 0)
        return false;
    return what == purge_idle || is_all_free(s) ||
           huge_is_worth_splitting(superblock_first_slice(s), superblock_slices(s));
}

/* ---- holes ---- */

/* Bytes of holes: those the last pass found, and those made since.  Malloc leaves them unused, and unused address space
 * costs descriptors to look at: so at most three quarters of what is in use. */
static size_t holes_bytes;

static size_t uncarved_bytes(const struct superblock *s)
{
    return bytes_of(s, s->uncarved);
}

/* `s` is detached, and a part of it is being purged: its uncarved units are holes if that broke a huge page. */
static void note_holes(struct superblock *s)
{
    if (s->has_holes || !huge_was_split(superblock_first_slice(s)) ||
        (holes_bytes + uncarved_bytes(s)) / 3 > span_in_use_bytes() / 4)
        return;
    s->has_holes = true;
    holes_bytes += uncarved_bytes(s);
}

/* ---- offline, and back ---- */

/* Adds `s` to the batch, which has room; not if no heap owns it, or, without a fence, not the one the caller runs
 * on. */
static void take_offline(struct batch *b, struct superblock *s)
{
    struct heap *h = superblock_owner(s);
    bool taken = false;
    if (h == NULL)
        return;
    lock_take(&h->lock);
    if (s->slice.kind == slice_superblock && superblock_owner(s) == h) {
        taken = !b->is_own || heap_give_up(h, s) == rcs_done;
        if (!b->is_own)
            heap_take_offline(h, s);
    }
    lock_release(&h->lock);
    if (taken)
        offline[b->count++] = (struct offline){s, h, 0};
}

/* Adds units that were just uncarved to what is purged, one range for each run. */
static void add_holes(struct batch *b, struct superblock *s, unit_set units)
{
    size_t unit = superblock_unit_bytes(s);
    if (units == 0)
        return;
    while (units != 0) {
        unit_set run = units_low_run(units);
        purge_batch_add(&b->pages, superblock_start(s) + units_first(run) * unit, (size_t)units_count(run) * unit);
        units &= ~run;
    }
    note_holes(s);
}

/* Relists it, in the global heap if its own heap is idle and it is mostly free: so that others fill it. */
static void put_online(const struct offline *o, unsigned seen)
{
    struct heap *h = o->heap;
    struct superblock *s = o->superblock;
    if (h->is_idle && superblock_is_mostly_free(s, s->freelist)) {
        global_adopt(s);
    } else {
        lock_take(&h->lock);
        heap_relist(h, s);
        lock_release(&h->lock);
    }
    s->seen = (uint16_t)(look_of(s) | seen);
}

/* Returns what is wrong with it, or NULL. */
static const char *purge_superblock(struct batch *b, struct offline *o)
{
    const char *damage = NULL;
    struct superblock *s = o->superblock;
    heap_collect(o->heap, s);
    if (superblock_live(s, s->freelist) == 0)
        return superblock_check_all_free(s, s->freelist);
    superblock_uncarve(s, by_pass, &damage);
    if (damage != NULL)
        return damage;
    if (b->lends)
        superblock_lend(s);
    o->units = superblock_stale_units(s);
    add_holes(b, s, o->units);
    return NULL;
}

/* Purges the batch and puts it online again. */
static void finish(struct batch *b)
{
    struct offline *const end = offline + b->count;
    if (b->count == 0)
        return;
    b->pages.refused = false;
    if (!b->is_own && !rcs_fence()) { /* refused, and nothing has been touched */
        for (struct offline *o = offline; o < end; o++)
            heap_undo_offline(o->heap, o->superblock);
        b->count = 0;
        return;
    }
    /* From here on the superblocks are detached. */
    for (struct offline *o = offline; o < end; o++) {
        ASSERT(superblock_is_detached(o->superblock));
        if (superblock_quarantine_if(purge_superblock(b, o), o->superblock, "purge"))
            o->superblock = NULL;
        else
            AUDIT(superblock_check(o->superblock));
    }
    purge_batch_flush(&b->pages);
    for (struct offline *o = offline; o < end; o++) {
        struct superblock *s = o->superblock;
        if (s == NULL)
            continue;
        if (!b->pages.refused)
            superblock_note_purged(s, o->units);
        if (superblock_live(s, s->freelist) == 0) {
            superblock_give(s);
            b->gave_spans = true;
        } else {
            put_online(o, b->lends ? SEEN_BITS : SEEN_PURGED);
        }
    }
    b->count = 0;
}

static void add(struct batch *b, struct superblock *s)
{
    if (b->count == BATCH) {
        finish(b);
        pass_yield();
    }
    if (b->count == 0)
        b->is_own = !rcs_has_fence();
    take_offline(b, s);
}

void purge_superblocks(struct purge_round *r)
{
    struct batch b = {0};
    size_t slices_left = r->is_in_pieces ? PIECE_SLICES : SIZE_MAX;
    while (slices_left > 0 && round_looks_on(r)) {
        struct superblock *s = superblock_beginning_at(r->at++);
        if (s == NULL)
            continue;
        if (s->has_holes)
            r->holes_found += uncarved_bytes(s);
        if (is_wanted(s, r->what, &r->most, &r->changed)) {
            slices_left -= min_size(slices_left, superblock_slices(s));
            add(&b, s);
        }
    }
    finish(&b);
    r->changed |= b.gave_spans;
    r->bytes += b.pages.bytes;
    span_note_purged(b.pages.bytes);
}

void purge_note_holes(const struct purge_round *r)
{
    holes_bytes = r->holes_found + (holes_bytes - min_size(holes_bytes, r->holes_before));
}

size_t purge_holes_bytes(void)
{
    return holes_bytes;
}

/* True if `s` may be empty or have a slice to lend, as far as counting tells. */
static bool may_yield(const struct superblock *s)
{
    size_t free_blocks = superblock_free_blocks(s), live = s->carved - min_size(s->carved, free_blocks);
    size_t bytes = superblock_capacity(s) * s->block_bytes;
    if (!s->has_lent)
        bytes = superblock_slices(s) * SLICE_BYTES;
    return live == 0 || bytes - min_size(bytes, live * s->block_bytes) >= SLICE_BYTES;
}

/* True if `s` may yield what it did not the last time it was looked at; if not, that is written down.  If it did not
 * change it looks the same; `is_all`: it may have changed so that it looks the same. */
static bool is_worth_gathering(struct superblock *s, bool is_all)
{
    if (!is_all && looks_as(s, SEEN_LENT))
        return false;
    if (may_yield(s))
        return true;
    s->seen = (uint16_t)(look_of(s) | SEEN_LENT | (looks_as(s, SEEN_PURGED) ? SEEN_PURGED : 0));
    return false;
}

/* True if the system would let the region grow by so many slices now. */
static bool could_open(size_t slices)
{
    void *probe = os_map(slices << SLICE_SHIFT);
    if (probe != NULL)
        os_unmap(probe, slices << SLICE_SHIFT);
    return probe != NULL;
}

/* Whether so many slices in a row may be free afterwards, as far as counting tells: a superblock with a live block
 * keeps its first slice at least.  What a run at the end of the region lacks may still be opened behind it. */
static bool may_make_room_for(size_t slices, bool is_all)
{
    size_t run = 0;
    bool is_longer = false, yields = false; /* the run, by a superblock; the superblock it is in */
    uint32_t at = region_slice_from(0);
    for (uint32_t next; at != SLICE_END; at = next) {
        struct superblock *s = superblock_at_slice(at);
        bool is_free = true;
        next = at + 1;
        switch (slice_kind(&s->slice)) {
        case slice_superblock:
            yields = is_worth_gathering(s, is_all);
            is_longer |= is_free = yields && superblock_free_blocks(s) >= s->carved;
            break;
        case slice_tail:
            is_longer |= is_free = yields;
            break;
        case slice_hole:
            is_free = false;
            break;
        case slice_large:
        case slice_kept:
        case slice_quarantine:
            next = at + (uint32_t)max_size(s->slice.slices, 1);
            is_free = false;
            break;
        default:
            break;
        }
        run = is_free ? run + 1 : 0;
        is_longer &= is_free;
        if (run >= slices && is_longer)
            return true;
        next = region_slice_from(next);
        if (next != at + 1 && next != SLICE_END)
            run = 0, is_longer = false;
    }
    return is_longer && could_open(slices - run);
}

/* A program may be refused again and again, so what looks as it did is looked at only every now and then. */
static void gather(size_t slices)
{
    static uint64_t all_ns; /* when all were looked at; in a pass */
    struct batch b = {.lends = true};
    uint32_t slice = 0;
    const uint64_t now_ns = os_now_ns();
    const bool is_all = now_ns - all_ns >= GATHER_ALL_NS;
    if (!may_make_room_for(slices, is_all))
        return;
    while ((slice = region_slice_from(slice)) != SLICE_END) {
        struct superblock *s = superblock_beginning_at(slice++);
        if (s != NULL && is_worth_gathering(s, is_all))
            add(&b, s);
    }
    if (is_all)
        all_ns = now_ns;
    finish(&b);
    span_note_purged(b.pages.bytes);
}

void heap_make_room(enum room where, size_t bytes)
{
    large_give_deferred();
    bool ignored;
    pass_begin();
    mapping_trim(0);
    if (where == room_everywhere) {
        outboxes_send(true, &ignored);
        gather(slices_for(bytes));
    }
    pass_end();
    span_await_away();
}
