/* SPDX-License-Identifier: MIT */
#include "heap/heap.h"

#include "base/tally.h"
#include "heap/demand.h"
#include "heap/meta.h"
#include "heap/outbox.h"

struct superblock empty_superblock = {.threshold = THRESHOLD_NEVER, .slice = {.next = SLICE_NONE, .prev = SLICE_NONE}};

struct heap empty_heap = {
    .lock = LOCK_FREE(rank_heap),
    .x_slot = SLOT_NONE,
    .active = {[0 ... CLASS_COUNT - 1] = &empty_superblock},
};

struct heap global_heap[GLOBAL_HEAPS] = {[0 ... GLOBAL_HEAPS - 1] = {.lock = LOCK_FREE(rank_global_heap)}};

struct heap *heap_list[HEAPS_MAX];
_Atomic unsigned heap_total;
struct lock binding_lock = LOCK_FREE(rank_binding);

/* If sections abort this often in a row, something aborts them, and it is not chance: a section takes a few
 * nanoseconds, and a thread is interrupted a few thousand times a second at most. */
#define ABORTS_MAX 8

enum rcs_result heap_commit(struct heap *h, const struct superblock *s, const uint64_t *probe, uint64_t expected,
                            uint64_t *target, uint64_t value)
{
    ASSERT(lock_is_mine(&h->lock) || superblock_is_detached(s));
    if (sync_mode != sync_rcs || heap_is_global(h) || superblock_is_detached(s)) { /* no section touches it */
        if (__atomic_load_n(probe, __ATOMIC_RELAXED) != expected)
            return rcs_changed;
        __atomic_store_n(target, value, __ATOMIC_RELEASE);
        return rcs_done;
    }
    if (rcs_is_suspended())
        return rcs_moved;
    enum rcs_result result = rcs_aborted;
    for (int i = 0; i < ABORTS_MAX && result == rcs_aborted; i++)
        result = rcs_compare_and_store(h, probe, expected, target, value);
    return result;
}

/* ---- which heap ---- */

static struct heap *heap_create(void)
{
    ASSERT(lock_is_mine(&binding_lock));
    unsigned total = atomic_load_explicit(&heap_total, memory_order_relaxed);
    struct heap *h = total < HEAPS_MAX ? meta_take(sizeof *h) : NULL;
    if (h == NULL)
        return NULL;
    for (unsigned c = 0; c < CLASS_COUNT; c++)
        h->active[c] = &empty_superblock;
    h->lock = (struct lock)LOCK_FREE(rank_heap);
    h->x_slot = SLOT_NONE;
    h->number = total;
    outbox_start(h);
    heap_list[total] = h;
    atomic_store_explicit(&heap_total, total + 1, memory_order_release);
    return h;
}

static NOINLINE struct heap *heap_bind_slow(unsigned slot)
{
    CHECK(slot < slot_count); /* a thread that owns no heap must not come by one */
    lock_take(&binding_lock);
    struct heap *h = heap_of_cid[slot];
    if (h == &empty_heap) {
        h = heap_create();
        if (h != NULL) {
            h->x_slot = slot;
            __atomic_store_n(&heap_of_cid[slot], h, __ATOMIC_RELEASE);
        }
    }
    lock_release(&binding_lock);
    return h;
}

struct heap *heap_here(void)
{
    unsigned slot = sync_slot();
    struct heap *h = __atomic_load_n(&heap_of_cid[slot], __ATOMIC_ACQUIRE);
    return likely(h != &empty_heap) ? h : heap_bind_slow(slot);
}

/* ---- lists ---- */

static bool is_surplus(enum group group)
{
    return group == group_mostly_free || group == group_empty;
}

void heap_list_insert(struct heap *h, struct superblock *s, enum group group)
{
    ASSERT(lock_is_mine(&h->lock));
    struct class_lists *lists = &h->class[s->class];
    s->group = (uint8_t)group;
    slice_list_insert(&lists->head[group], &s->slice);
    lists->listed++;
    if (is_surplus(group)) {
        lists->surplus++;
        h->surplus_slices += superblock_slices(s);
    }
}

void heap_list_remove(struct heap *h, struct superblock *s)
{
    ASSERT(lock_is_mine(&h->lock));
    struct class_lists *lists = &h->class[s->class];
    slice_list_remove(&lists->head[s->group], &s->slice);
    if (lists->look == superblock_first_slice(s) + 1)
        lists->look = s->slice.next + 1;
    lists->listed--;
    if (is_surplus(s->group)) {
        lists->surplus--;
        h->surplus_slices -= superblock_slices(s);
    }
    s->group = group_none;
    s->slice.next = s->slice.prev = SLICE_NONE;
}

void heap_take_offline(struct heap *h, struct superblock *s)
{
    ASSERT(lock_is_mine(&h->lock));
    if (h->active[s->class] == s)
        __atomic_store_n(&h->active[s->class], &empty_superblock, __ATOMIC_RELEASE);
    else if (s->group != group_none)
        heap_list_remove(h, s);
    superblock_clear_owner(s);
}

void heap_undo_offline(struct heap *h, struct superblock *s)
{
    superblock_set_owner(s, h);
    heap_push_pending(h, s);
}

struct superblock *heap_detach(struct heap *h, struct superblock *s)
{
    ASSERT(lock_is_mine(&h->lock));
    if (s == NULL)
        return NULL;
    heap_take_offline(h, s);
    if (rcs_fence())
        return s;
    heap_undo_offline(h, s);
    return NULL;
}

enum rcs_result heap_give_up(struct heap *h, struct superblock *s)
{
    ASSERT(lock_is_mine(&h->lock));
    uint64_t *slot = (uint64_t *)&h->active[s->class];
    bool was_active = h->active[s->class] == s;
    enum rcs_result result = rcs_done;
    if (was_active)
        result = heap_commit(h, s, slot, (uintptr_t)s, slot, (uintptr_t)&empty_superblock);
    if (result != rcs_done)
        return result;
    do
        result = heap_commit(h, s, &s->freelist, superblock_freelist(s), &s->owner, 0);
    while (result == rcs_changed);
    if (result == rcs_done && s->group != group_none)
        heap_list_remove(h, s);
    else if (result != rcs_done && was_active)
        heap_push_pending(h, s);
    return result;
}

static bool has_room(const struct superblock *s)
{
    return superblock_freelist(s) != 0 || superblock_is_carvable(s) || freelist_count(atomic_load(&s->x_remote)) != 0;
}

/* Superblocks less than an eighth free are listed as they come, and each is worth a few blocks.  So a few of them are
 * looked at; more where memory is short, for then there are many. */
#define LOOK 8
#define LOOK_FURTHER 64

/* Of the first few of class `c` in group `g`, the first that will do; or NULL. */
static struct superblock *find_in(const struct heap *h, unsigned c, enum group g,
                                  bool (*will_do)(const struct superblock *))
{
    uint32_t at = h->class[c].head[g] - 1;
    for (int i = 0; i < LOOK && at != SLICE_NONE; i++) {
        struct superblock *s = superblock_at_slice(at);
        at = s->slice.next;
        if (will_do(s))
            return s;
    }
    return NULL;
}

struct superblock *heap_find_fullest(struct heap *h, unsigned c)
{
    ASSERT(lock_is_mine(&h->lock));
    for (enum group g = group_eighth; g <= group_empty; g++)
        if (h->class[c].head[g] != 0)
            return superblock_at_slice(h->class[c].head[g] - 1);
    return find_in(h, c, group_nearly_full, has_room);
}

struct superblock *heap_find_fullest_of(struct heap *h, unsigned c, bool (*will_do)(const struct superblock *))
{
    ASSERT(lock_is_mine(&h->lock));
    struct superblock *s = NULL;
    for (enum group g = group_eighth; s == NULL && g <= group_empty; g++)
        s = find_in(h, c, g, will_do);
    return s;
}

static struct superblock *fill_holes(struct superblock *s)
{
    if (s->uncarved == 0)
        return NULL;
    s->has_holes = false;
    return s;
}

struct superblock *heap_find_further(struct heap *h, unsigned c)
{
    ASSERT(lock_is_mine(&h->lock));
    struct class_lists *lists = &h->class[c];
    for (unsigned i = 0; i < LOOK_FURTHER && i < lists->listed; i++) {
        if (lists->look == 0)
            lists->look = lists->head[group_nearly_full];
        if (lists->look == 0)
            return NULL;
        struct superblock *s = superblock_at_slice(lists->look - 1);
        lists->look = s->slice.next + 1;
        if (has_room(s) || fill_holes(s) != NULL)
            return s;
    }
    return NULL;
}

struct superblock *heap_find_any(struct heap *h, unsigned c)
{
    struct superblock *s = heap_find_fullest(h, c), *with_holes = NULL, *each;
    for (uint32_t at = h->class[c].head[group_nearly_full] - 1; s == NULL && at != SLICE_NONE; at = each->slice.next) {
        each = superblock_at_slice(at);
        s = has_room(each) ? each : NULL;
        with_holes = each->uncarved != 0 ? each : with_holes;
    }
    if (s == NULL && with_holes != NULL)
        s = fill_holes(with_holes);
    if (s == NULL && !heap_is_global(h) && h->active[c] != &empty_superblock && has_room(h->active[c]))
        s = h->active[c];
    return s;
}

/* ---- the pending stack ---- */

#define PENDING_END 1u

void heap_push_pending(struct heap *h, struct superblock *s)
{
    uint32_t unpushed = 0;
    if (!atomic_compare_exchange_strong(&s->x_pending_next, &unpushed, PENDING_END))
        return; /* on a pending stack already; whoever flushes that one clears the mark before looking at s */
    uint32_t head = atomic_load_explicit(&h->x_pending, memory_order_relaxed);
    do
        atomic_store_explicit(&s->x_pending_next, head == 0 ? PENDING_END : head, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&h->x_pending, &head, superblock_first_slice(s) + 2,
                                                  memory_order_release, memory_order_relaxed));
}

/* After a push.  Only now the owner is read: if there is none, who has the superblock arms it later, and finds the
 * push.  Had it been read before, one might have come since, and armed. */
static enum remote_pushed tell_owner(struct superblock *s, enum remote_pushed pushed)
{
    struct heap *owner = superblock_owner(s);
    if (pushed == remote_pushed_armed && owner != NULL)
        heap_push_pending(owner, s);
    return pushed;
}

enum remote_pushed heap_push_remote(struct superblock *s, void *block)
{
    return tell_owner(s, remote_push(s, block));
}

enum remote_pushed heap_push_remote_chain(struct superblock *s, uint64_t chain)
{
    return tell_owner(s, remote_push_chain(s, chain));
}

struct superblock *heap_pop_pending(struct heap *h)
{
    ASSERT(lock_is_mine(&h->lock));
    if (h->flushing == 0) {
        if (atomic_load_explicit(&h->x_pending, memory_order_relaxed) == 0)
            return NULL;
        h->flushing = atomic_exchange_explicit(&h->x_pending, 0, memory_order_acquire);
    }
    struct superblock *s = superblock_at_slice(h->flushing - 2);
    uint32_t next = atomic_exchange(&s->x_pending_next, 0); /* before it is looked at: a push from here on is another */
    h->flushing = next == PENDING_END ? 0 : next;
    TALLY(flushed);
    return s;
}
