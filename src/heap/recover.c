/* SPDX-License-Identifier: MIT
 *
 * The heap of a forked child.  No lock was taken before, so other threads of the parent may have been anywhere in their
 * slow paths, and none of them is here to finish.
 *
 * A fork shows the child every thread's stores in their order up to some point.  Sections change the heap by one store,
 * so free lists, owners and active slots are as good as ever.  What is done in several stores is done under a lock; a
 * lock found held tells that its data may be half-written, and they are made anew from something that is not:
 *   binding lock   heap_of_cid, and from it each heap's slot (exchange, heap_bind_slow); the chunk of heap/meta.c is
 *                  given up
 *   heap lock      its lists, from the superblocks' owners: every superblock it owns is made pending, and is relisted
 *                  later (heap/relist.c); blocks counted as carved, from the units
 *   span lock      bins, from the tags of free spans
 *   mapping lock   nothing: heap/mapping.c changes its table by single stores
 * Pending stacks are pushed to without a lock, in two stores: all are made anew.
 *
 * Some things are in a thread's hands and nowhere else: superblocks that nobody owns (a batch being purged, one on its
 * way from heap to heap), slices that belong to nothing (a span between taking and formatting, a batch being purged).
 * In the child all those are free to take: the thread that forked holds none, and there is no other.
 *
 * Lost to the child, never handed out twice: blocks that only a register of a vanished thread named (taken off a remote
 * list and not yet joined to the local one, out of an outbox and not yet with their superblock, carved and not yet
 * published), and a mapping between its removal from the table and its unmapping.  At most one superblock's blocks, or
 * one mapping, for each such thread.
 */
#include "heap/audit.h"
#include "heap/heap.h"
#include "heap/large.h"
#include "heap/mapping_table.h"
#include "heap/mapping_cache.h"
#include "heap/meta.h"
#include "heap/outbox.h"
#include "heap/pass.h"
#include "heap/span.h"

static void bind_again(void)
{
    for (unsigned i = 0; i < heap_total; i++) {
        struct heap *h = heap_list[i];
        uint32_t slot = h->x_slot;
        if (slot == SLOT_NONE || heap_of_cid[slot] == h)
            continue;
        if (heap_of_cid[slot] == &empty_heap)
            heap_of_cid[slot] = h;
        else
            h->x_slot = SLOT_NONE;
    }
}

static void empty_lists(struct heap *h)
{
    atomic_store(&h->x_pending, 0);
    h->flushing = 0;
    if (!lock_is_held(&h->lock))
        return;
    h->surplus_slices = 0;
    for (unsigned c = 0; c < CLASS_COUNT; c++)
        h->class[c] = (struct class_lists){0};
}

/* True if remote frees wait that no pending stack tells of, or a threshold was reached and nobody acted on it. */
static bool is_due(const struct superblock *s)
{
    uint64_t remote = atomic_load(&s->x_remote), list = superblock_freelist(s);
    return (freelist_count(remote) != 0 && (remote & REMOTE_ARMED) == 0) || freelist_count(list) >= s->threshold;
}

/* For a detached superblock, which a thread had in its hands that is not here.  Any heap will do. */
static struct heap *adopt(struct superblock *s)
{
    struct heap *h = heap_of_cid[sync_slot()];
    if (h == &empty_heap)
        h = global_heap_of(s->class);
    superblock_finish_uncarving(s);
    superblock_set_owner(s, h);
    return h;
}

static void recover_superblock(struct superblock *s, bool was_pending)
{
    struct heap *h = superblock_owner(s);
    bool is_nobodys = h == NULL;
    if (is_nobodys)
        h = adopt(s);
    bool unlisted = is_nobodys || lock_is_held(&h->lock);
    if (unlisted) {
        s->group = group_none;
        s->slice.next = s->slice.prev = SLICE_NONE;
        superblock_recount(s);
    }
    if (h->active[s->class] != s)
        AUDIT(superblock_check(s));
    if (h->active[s->class] != s && (unlisted || was_pending || is_due(s)))
        heap_push_pending(h, s);
}

bool heap_is_locked(void)
{
    bool held = lock_is_held(&binding_lock) || lock_is_held(&span_lock) || lock_is_held(&mapping_lock) ||
                lock_is_held(&pass_lock);
    for (unsigned i = 0; i < GLOBAL_HEAPS && !held; i++)
        held = lock_is_held(&global_heap[i].lock);
    for (unsigned i = 0; i < heap_total && !held; i++)
        held = lock_is_held(&heap_list[i]->lock);
    return held;
}

void heap_recover(void)
{
    if (lock_is_held(&binding_lock)) {
        bind_again();
        meta_recover();
    }
    for (unsigned i = 0; i < heap_total; i++)
        empty_lists(heap_list[i]);
    for (unsigned i = 0; i < GLOBAL_HEAPS; i++)
        empty_lists(&global_heap[i]);
    bool was_held = lock_is_held(&span_lock);
    lock_reset(&span_lock);
    lock_take(&span_lock);
    span_recover(was_held);
    lock_release(&span_lock);
    for (uint32_t slice = region_slice_from(0); slice != SLICE_END; slice = region_slice_from(slice + 1)) {
        struct superblock *s = superblock_at_slice(slice);
        bool was_pending = s->x_pending_next != 0;
        if (was_pending)
            atomic_store(&s->x_pending_next, 0);
        if (s->slice.kind == slice_superblock)
            recover_superblock(s, was_pending);
    }
    outboxes_recover();
    lock_reset(&binding_lock);
    for (unsigned i = 0; i < heap_total; i++)
        lock_reset(&heap_list[i]->lock);
    for (unsigned i = 0; i < GLOBAL_HEAPS; i++)
        lock_reset(&global_heap[i].lock);
    heap_regain_recover();
    mapping_table_recover();
    mapping_cache_recover();
    lock_reset(&mapping_lock);
}
