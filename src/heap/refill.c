/* SPDX-License-Identifier: MIT
 *
 * Refill: malloc found its active superblock without a free block.  What is nearest comes first: blocks of the same
 * superblock that were freed meanwhile, its uncarved units, another superblock of the heap (fullest first), the global
 * heap, a heap at rest, what is pending on heaps at rest, memory that has pages, fresh memory, holes.
 *
 * Every step is either a section on the caller's heap or work on something detached.  If a section finds that the
 * thread was moved, the superblock in hand goes onto the heap's pending stack and the caller starts over where it runs
 * now.
 */
#include "heap/allowance.h"
#include "heap/demand.h"
#include "heap/heap.h"
#include "heap/inherited.h"
#include "heap/outbox.h"
#include "heap/remote.h"
#include "heap/span.h"

#define DENSE_BYTES_MAX 8192u

static enum refill refill_failed(enum rcs_result result)
{
    return result == rcs_aborted ? refill_aborted : refill_moved;
}

/* If threads of other heaps free into `s` while this one allocates from it, they contend for its descriptor over a few
 * blocks a refill, and for the blocks, which are handed out while their lines are still in the other cpu's first cache
 * or in use there.  It is better to allocate elsewhere until more has come back: a quarter of the superblock, and as
 * long as it can be carved, more than such a cache holds.  (With larger blocks that would take too much memory.) */
static bool remote_is_trickle(const struct superblock *s)
{
    const size_t cached_bytes = 64 << 10, largest = 1024;
    const size_t back = freelist_count(atomic_load_explicit(&s->x_remote, memory_order_relaxed));
    const bool is_less_than_a_quarter = back < s->blocks / 4u, is_still_cached = back * s->block_bytes < cached_bytes;
    return back != 0 && s->block_bytes <= largest &&
           (is_less_than_a_quarter || (superblock_is_carvable(s) && is_still_cached));
}

/* What is carved together has pages, or has none. */
static void note_new_pages(const struct superblock *s, struct carving carving)
{
    if ((carving.units & s->dirty) == 0)
        allowance_use((size_t)freelist_count(carving.list) * s->block_bytes);
}

/* Gives `s`, of heap `h`, a list if it has none: its remote frees, else as many newly carved blocks as `amount` says.
 * refill_exhausted if it has neither. */
static enum refill restock(struct heap *h, struct superblock *s, enum carve amount)
{
    if (superblock_freelist(s) != 0)
        return refill_ready;
    enum rcs_result result;
    if (freelist_count(atomic_load_explicit(&s->x_remote, memory_order_relaxed)) != 0 &&
        !(superblock_is_carvable(s) && remote_is_trickle(s))) {
        /* Linked from an empty list, the chain is a list as it stands. */
        uint64_t chain = remote_take(s, false);
        result = heap_commit(h, s, &s->freelist, 0, &s->freelist, chain);
        if (result != rcs_done)
            remote_return(s, chain);
    } else if (!superblock_is_carvable(s)) {
        return refill_exhausted;
    } else {
        struct carving carving = superblock_carve(s, amount);
        /* Count before publishing: from the commit on, other threads may ask about these blocks. */
        superblock_count_carving(s, carving);
        result = heap_commit(h, s, &s->freelist, 0, &s->freelist, carving.list);
        if (result != rcs_done)
            superblock_discount_carving(s, carving);
        else
            note_new_pages(s, carving);
    }
    if (result == rcs_done || result == rcs_changed)
        return refill_ready;
    return refill_failed(result);
}

/* To go on with `s` in place of fresh pages: an eighth of it is free, and that is enough blocks, or memory, that malloc
 * is not here again at once.  A short superblock of large blocks has only a few. */
static bool is_worth_going_back_to(const struct superblock *s)
{
    const unsigned enough_blocks = 16;
    const size_t enough_bytes = 1ul << 20;
    const size_t blocks = superblock_free_blocks(s);
    return blocks >= s->blocks / 8u && (blocks >= enough_blocks || blocks * s->block_bytes >= enough_bytes);
}

/* To carve the active superblock further may touch fresh pages: another one of the heap may be better.  But where it
 * has its pages, an empty one would not be: that can go back as a whole. */
static struct superblock *instead_of_carving(struct heap *h, unsigned c)
{
    const struct superblock *active = h->active[c];
    if (superblock_free_blocks(active) != 0 || !superblock_is_carvable(active) || inherited_is_shunned(c))
        return NULL;
    struct superblock *s = heap_find_fullest_of(h, c, is_worth_going_back_to);
    return s != NULL && s->group == group_empty && !superblock_has_zeros(active) ? NULL : s;
}

/* From here on no free of one of its blocks calls the slow path. */
static enum rcs_result disarm(struct heap *h, struct superblock *s)
{
    enum rcs_result result;
    do {
        uint64_t list = superblock_freelist(s);
        result = heap_commit(h, s, &s->freelist, list, &s->threshold_and_sizes, with_threshold(s, THRESHOLD_NEVER));
    } while (result == rcs_changed);
    return result;
}

/* A child that shuns what it inherited counts as a new heap. */
static unsigned superblocks_of(const struct heap *h, unsigned c)
{
    if (inherited_is_shunned(c))
        return OWN_MAX - inherited_own_left(c);
    return h->class[c].listed + (!heap_is_global(h) && h->active[c] != &empty_superblock);
}

/* In the dense arena one touch may bring 2 MiB, so only what the program is seen to fill belongs there.  A heap may
 * never have more than its first superblock of a class; of larger blocks it counts as filling only from the fifth
 * on. */
static enum span_use use_for(const struct heap *h, unsigned c)
{
    const unsigned used_up = 4;
    bool is_dense = !inherited_is_shunned(c) && size_class[c].bytes <= DENSE_BYTES_MAX * 4 &&
                    superblocks_of(h, c) > (size_class[c].bytes <= DENSE_BYTES_MAX ? 0 : used_up);
    return is_dense ? span_dense : span_large;
}

/* To be carved at once of a superblock the heap changes to. */
static enum carve amount_for(const struct heap *h, unsigned c)
{
    return superblocks_of(h, c) > CARVED_SPARINGLY ? carve_many : carve_some;
}

/* Slices of a fresh superblock: a heap's first has a sixteenth of the class's length, and its next ones so much that it
 * has twice as much as before.  So heaps of few blocks take little address space, large heaps have few superblocks, and
 * what is prefaulted is half used at least.  Larger blocks, of which a sixteenth holds two, lie where nothing is
 * prefaulted until there are several: there the second has a quarter, and the others all of it. */
static unsigned length_for(const struct heap *h, unsigned c)
{
    static const uint8_t part[2][5] = {{16, 16, 8, 4, 2}, {16, 4, 1, 1, 1}};
    const unsigned full = size_class[c].slices, had = superblocks_of(h, c);
    const unsigned divisor = had < ARRAY_LEN(part[0]) ? part[size_class[c].bytes > DENSE_BYTES_MAX][had] : 1;
    return (full + divisor - 1) / divisor;
}

/* `slices`, without those that no block would use. */
static unsigned slices_used(unsigned c, size_t slices)
{
    const struct size_class *row = &size_class[c];
    size_t blocks = max_size(1, slices * SLICE_BYTES / row->bytes);
    return blocks >= row->blocks ? row->slices : (unsigned)slices_for(blocks * row->bytes);
}

static struct superblock *fresh(const struct heap *h, unsigned c)
{
    const unsigned slices = slices_used(c, length_for(h, c));
    uint32_t first;
    return span_take(use_for(h, c), slices, 1, &first) ? superblock_format(first, c, slices) : NULL;
}

/* Of memory that has pages; or NULL. */
static struct superblock *used(enum span_use use, unsigned c, unsigned slices)
{
    uint32_t first;
    return span_take_used(use, slices, &first) ? superblock_format(first, c, slices) : NULL;
}

/* Before pages are used that never were, what the heap keeps for other classes is, and what there is of spans of half
 * and a quarter of the length; shorter ones, too, where other superblocks keep much that they could lend. */
static struct superblock *used_or_fresh(struct heap *h, unsigned c)
{
    const unsigned regains_max = 3; /* what is regained may lie apart */
    const unsigned part = heap_is_mostly_surplus(h) ? 16 : 4;
    const enum span_use use = use_for(h, c);
    const unsigned full = slices_used(c, length_for(h, c)), least = slices_used(c, 1);
    struct superblock *s = used(use, c, full);
    for (unsigned i = 0; s == NULL && i < regains_max && heap_regain(h, c, full); i++)
        s = used(use, c, full);
    for (unsigned some = full / 2; s == NULL && some >= least && some >= full / part; some /= 2)
        s = used(use, c, slices_used(c, some));
    if (s == NULL)
        return fresh(h, c);
    heap_note_retaken(h, superblock_slices(s));
    return s;
}

/* Where no span of the usual length is left: at most an eighth of the class's length, so that other heaps get something
 * too, or else as much as one block takes. */
static struct superblock *fresh_short(const struct heap *h, unsigned c)
{
    const unsigned least = slices_used(c, 1), full = size_class[c].slices;
    const unsigned some = slices_used(c, min_size(full / 8, length_for(h, c)));
    uint32_t first;
    if (least < full && span_take(use_for(h, c), some, 1, &first))
        return superblock_format(first, c, some);
    return span_squeeze(least, 1, &first) ? superblock_format(first, c, least) : NULL;
}

/* A detached superblock with room, from the global heap or a heap at rest; or NULL. */
static struct superblock *heap_find(struct heap *h, unsigned c)
{
    global_want(h, c);
    struct superblock *s = global_take(c, heap_find_fullest);
    return s != NULL ? s : heap_take_from_resting(h, c);
}

/* One of fresh memory, however short. */
static struct superblock *fresh_at_all(const struct heap *h, unsigned c)
{
    struct superblock *s = fresh(h, c);
    return s != NULL ? s : fresh_short(h, c);
}

/* True if the next of the top block does not continue the count: then a pop refuses it, for somebody wrote to it after
 * it was freed.  Only a suspicion, because the block may have been handed out while we look. */
static bool is_suspect(uint64_t list)
{
    return list != 0 && freelist_count(next_get(freelist_top(list))) + 1 != freelist_count(list);
}

/* If the list of `s`, the active superblock, looks damaged: detaches it, checks the list, and leaves the class without
 * an active superblock. */
static enum rcs_result inspect_suspect(struct heap *h, struct superblock *s)
{
    if (likely(!is_suspect(superblock_freelist(s))))
        return rcs_done;
    enum rcs_result result = heap_give_up(h, s);
    if (result != rcs_done)
        return result;
    if (!superblock_quarantine_if(superblock_check_list(s, s->freelist), s, "malloc"))
        heap_relist(h, s);
    return rcs_done;
}

/* The best superblock on the heap's lists; or NULL.  Pending superblocks are relisted first if the lists have nothing
 * good, and at every 16th refill.  Not each time: relisting contends with the threads that free into them. */
static struct superblock *find_listed(struct heap *h, unsigned c)
{
    const unsigned pace = 16;
    bool is_due = h->refills % pace == 0;
    struct superblock *s = is_due ? NULL : heap_find_fullest(h, c);
    if (is_due)
        outbox_send(h);
    if (s == NULL || s->group == group_nearly_full) {
        heap_flush_pending(h);
        s = heap_find_fullest(h, c);
    }
    return s;
}

/* A superblock of a forked child's own; or NULL. */
static struct superblock *own(const struct heap *h, unsigned c)
{
    struct superblock *s = inherited_is_shunned(c) ? fresh(h, c) : NULL;
    if (s != NULL)
        inherited_note_own(c);
    return s;
}

/* The superblock to go on with: a listed one, one from another heap, a fresh one, or one with holes; NULL if there is
 * none.  While a trickle collects, a nearly full one will not do. */
static struct superblock *choose(struct heap *h, unsigned c, bool trickle)
{
    struct superblock *s = own(h, c);
    if (s != NULL)
        return s;
    s = find_listed(h, c);
    if (trickle && s != NULL && s->group == group_nearly_full)
        s = NULL;
    if (s == NULL)
        s = heap_find(h, c);
    if (s == NULL && heap_take_pending_of_resting(h)) /* of any class: the empty ones became spans */
        s = heap_find_fullest(h, c);
    if (s == NULL && atomic_load_explicit(&memory_is_short, memory_order_relaxed))
        s = heap_find_further(h, c); /* fresh memory may come in huge pages */
    if (s == NULL)
        s = used_or_fresh(h, c);
    if (s == NULL)
        s = heap_find_further(h, c);
    return s != NULL ? s : global_take(c, heap_find_further);
}

/* A superblock whose blocks are all free may have them in any order on its list.  Then it is to be carved again, in
 * order of address; true if so.  (The hardened library wants no order.) */
static bool begin_anew_if_scattered(struct heap *h, struct superblock *s)
{
#ifdef SUTLER_HARDENED
    return false;
#endif
    const uint64_t list = superblock_freelist(s);
    if (superblock_live(s, list) != 0 || s->has_lent || s->has_holes || !superblock_list_is_scattered(s) ||
        heap_commit(h, s, &s->freelist, list, &s->freelist, 0) != rcs_done)
        return false;
    superblock_begin_anew(s);
    return true;
}

/* Makes `s` the active superblock in place of `old`. */
static enum refill install(struct heap *h, unsigned c, struct superblock *old, struct superblock *s)
{
    enum rcs_result result = disarm(h, s);
    if (result != rcs_done)
        return refill_failed(result); /* still listed, still armed: nothing has happened */
    if (s->group != group_none)
        heap_list_remove(h, s);
    enum refill stocked = restock(h, s, begin_anew_if_scattered(h, s) ? carve_many : amount_for(h, c));
    if (stocked != refill_ready) {
        if (superblock_is_detached(s))
            heap_relist(h, s);
        else
            heap_push_pending(h, s);
        return stocked == refill_exhausted ? refill_moved : stocked; /* others took its blocks: start over */
    }
    superblock_set_owner(s, h);
    /* Until the commit, sections of the caller's heap may run on `old`.  (In lock mode the lock excludes them.) */
    uint64_t *slot = (uint64_t *)&h->active[c];
    result = heap_commit(h, s, slot, (uintptr_t)old, slot, (uintptr_t)s);
    if (result != rcs_done) {
        heap_push_pending(h, s);
        return refill_failed(result);
    }
    if (old != &empty_superblock)
        heap_relist(h, old);
    return refill_ready;
}

/* True if `s`, the active superblock, is used up but for a trickle of remote frees that is better left to collect.  A
 * class has only a few superblocks to leave aside like that. */
static bool is_left_to_collect(const struct heap *h, const struct superblock *s)
{
    const unsigned aside_max = 3;
    return superblock_freelist(s) == 0 && !superblock_is_carvable(s) && remote_is_trickle(s) &&
           h->class[s->class].listed < aside_max;
}

enum refill heap_refill(struct heap *h, unsigned c)
{
    ASSERT(lock_is_mine(&h->lock));
    h->refills++;
    enum rcs_result inspected = inspect_suspect(h, h->active[c]);
    if (unlikely(inspected != rcs_done))
        return refill_failed(inspected);

    struct superblock *active = h->active[c], *s = instead_of_carving(h, c);
    bool trickle = is_left_to_collect(h, active);
    if (s == NULL && !trickle) {
        enum refill stocked = restock(h, active, carve_some);
        if (stocked != refill_exhausted)
            return stocked;
    }
    if (s == NULL)
        s = choose(h, c, trickle);
    if (s == NULL && active->uncarved != 0) {
        active->has_holes = false;
        return restock(h, active, carve_some);
    }
    if (s == NULL)
        s = fresh_short(h, c);
    return s != NULL ? install(h, c, active, s) : refill_exhausted;
}

void *heap_take_fresh(struct heap *h, unsigned c)
{
    ASSERT(lock_is_mine(&h->lock));
    struct superblock *s = h->active[c];
    if (!superblock_has_zeros(s) || superblock_free_blocks(s) != 0)
        return NULL;
    struct carving carving = superblock_carve(s, carve_least);
    uint64_t *block = freelist_top(carving.list), rest = next_get(block);
    if (!superblock_is_zero_block(s, block))
        return NULL; /* it begins in a unit that was carved before */
    superblock_count_carving(s, carving);
    if (rest != 0 && heap_commit(h, s, &s->freelist, 0, &s->freelist, rest) != rcs_done) {
        superblock_discount_carving(s, carving);
        return NULL;
    }
    note_new_pages(s, carving);
    *block = 0;
    return block;
}

/* A block of a detached superblock, which becomes h's; NULL if all that was free is damaged. */
static void *take_from(struct heap *h, struct superblock *s)
{
    void *block = NULL;
    if (heap_collect(h, s) == rcs_done && restock(h, s, carve_some) == refill_ready) {
        const char *damage = is_suspect(s->freelist) ? superblock_check_list(s, s->freelist) : NULL;
        if (superblock_quarantine_if(damage, s, "malloc"))
            return NULL;
        block = freelist_top(s->freelist);
        s->freelist = next_get(block);
    }
    heap_relist(h, s);
    return block;
}

void *heap_take_wherever(struct heap *h, unsigned c)
{
    const int tries = 8; /* what was found may be damaged */
    struct superblock *s;
    void *block = NULL;
    if (h == NULL)
        h = global_heap_of(c);
    for (int i = 0; block == NULL && i < tries; i++) {
        if ((s = heap_take_from_any(c)) == NULL && (s = fresh_at_all(h, c)) == NULL)
            return NULL;
        lock_take(&h->lock);
        block = take_from(h, s);
        lock_release(&h->lock);
    }
    return block;
}

void *heap_take_detached(struct heap *h, unsigned c)
{
    ASSERT(lock_is_mine(&h->lock));
    /* A listed superblock of the caller's own heap is detached by a fence as if it were another heap's. */
    struct superblock *s = heap_detach(h, heap_find_fullest(h, c));
    void *block = s != NULL ? take_from(h, s) : NULL;
    if (block == NULL && ((s = heap_find(h, c)) != NULL || (s = fresh_at_all(h, c)) != NULL))
        block = take_from(h, s);
    return block;
}

void *heap_take_unbound(unsigned c)
{
    struct heap *global = global_heap_of(c);
    void *block = NULL;
    lock_take(&global->lock);
    struct superblock *s = global_detach(c, heap_find_fullest);
    if (s != NULL || (s = fresh_at_all(global, c)) != NULL)
        block = take_from(global, s);
    lock_release(&global->lock);
    return block;
}
