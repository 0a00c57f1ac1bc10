/* SPDX-License-Identifier: MIT
 *
 * free, behind its fast path.
 *
 * The fast path handles a block of a superblock of the running cid's heap.  Here comes the rest: what it was
 * interrupted in, blocks of other heaps (pushed to the superblock's remote list, LFMalloc section 3.2.2, with one
 * compare-and-swap; small ones by way of the heap's outbox, heap/outbox.h, many at a time), large blocks, NULL, and
 * every pointer that is none of ours.  In lock mode every call comes here.
 */
#include "core/child.h"
#include "core/core.h"
#include "core/locked.h"
#include "heap/inherited.h"
#include "heap/signal_safe.h"
#include "heap/large.h"
#include "heap/outbox.h"
#include "heap/remote.h"
#include "manager/hint.h"

#define TRIES_MAX 4

/* A free reached the superblock's threshold: it may belong on another list now. */
void free_notify(struct superblock *s)
{
    struct heap *h = superblock_owner(s);
    if (h == NULL)
        return; /* being moved; whoever has it will relist it */
    inherited_note_freed(s->class);
    if (!slow_enter()) {
        heap_push_pending(h, s);
        return;
    }
    if (lock_try(&h->lock)) {
        heap_relist_pending(h, s);
        lock_release(&h->lock);
    } else {
        heap_push_pending(h, s);
    }
    slow_leave_and_hint(slow_gave);
}

static void push_remote(struct superblock *s, void *p)
{
    if (heap_push_remote(s, p) == remote_double)
        free_double(p);
}

/* Blocks of another heap were freed; every now and then it is asked whether that heap should be ours. */
static void look_at(struct heap *owner, unsigned blocks)
{
    struct heap *here = heap_of_cid[sync_slot()];
    if (likely(!heap_wants_reclaim(here, owner, blocks)) || !slow_enter())
        return;
    here = heap_here();
    if (here != NULL && here != owner)
        heap_reclaim_if_inactive(here, owner);
    slow_leave();
}

/* A chain that was taken out of the outbox goes to its superblock. */
NOINLINE void free_deliver(uint64_t chain)
{
    look_at(outbox_deliver(chain), freelist_count(chain));
}

/* A thread that has only freed so far may run on a cid without a heap, and so without an outbox. */
static bool make_heap_here(void)
{
    if (heap_of_cid[sync_slot()] != &empty_heap || !slow_enter())
        return false;
    const bool made = heap_here() != NULL;
    slow_leave();
    return made;
}

/* True if the block is on its way. */
static bool send(const struct superblock *s, void *p)
{
    uint64_t chain = hot_send(p, s);
    if (chain == SEND_REFUSED && make_heap_here())
        chain = hot_send(p, s);
    if (chain == SEND_REFUSED)
        return false;
    if (chain == SEND_DOUBLE)
        free_double(p);
    else if (chain != SEND_KEPT)
        free_deliver(chain);
    return true;
}

/* The block is another heap's. */
static void free_remotely(struct superblock *s, void *p, struct heap *owner)
{
    if (s->batch != 0 && !rcs_is_suspended() && send(s, p))
        return;
    push_remote(s, p);
    if (!rcs_is_suspended())
        look_at(owner, 1);
}

static bool is_foreign(const struct superblock *s)
{
    return superblock_owner(s) != heap_of_cid[sync_slot()];
}

/* True if that is the end of it; else nothing was done. */
static inline bool has_ended(enum hot_pushed pushed, struct superblock *s, void *p)
{
    switch (pushed) {
    case hot_pushed:
        return true;
    case hot_pushed_notify:
        free_notify(s);
        return true;
    case hot_double:
        free_double(p);
        return true;
    default:
        return false;
    }
}

static void free_by_section(struct superblock *s, void *p)
{
    for (int i = rcs_is_suspended() ? TRIES_MAX : 0; i < TRIES_MAX; i++) {
        enum hot_pushed pushed = hot_push(p, s);
        if (has_ended(pushed, s, p))
            return;
        if (pushed == hot_foreign && is_foreign(s)) { /* else it was moved, or we were */
            free_remotely(s, p, superblock_owner(s));
            return;
        }
    }
    push_remote(s, p);
}

/* Lock mode: like Hoard, under the lock of the heap that owns the superblock.  Whoever has that lock, or is taking
 * the superblock from one heap to another, is not waited for. */
static inline void free_locked(struct superblock *s, void *p)
{
    if (!has_ended(locked_push(p, s), s, p))
        push_remote(s, p);
}

/* The short way to it, which comes first: but for it, lock mode has only slow ways. */
static bool free_in_locked_superblock(void *p)
{
    struct superblock *s = locked_paths_are_open ? superblock_at(p) : NULL;
    if (s == NULL || !superblock_is_block_quick(s, p))
        return false;
    free_locked(s, p);
    return true;
}

/* The short way for what the fast path leaves out most often: blocks of other heaps. */
static bool free_in_superblock(void *p)
{
    struct superblock *s = hot.region_bytes != 0 ? superblock_at(p) : NULL;
    if (s == NULL || !superblock_is_block_start(s, p))
        return false;
    if (likely(is_foreign(s)) || rcs_is_suspended())
        free_remotely(s, p, superblock_owner(s));
    else
        free_by_section(s, p);
    return true;
}

/* The shortest way: a large block that is kept for the next one. */
static inline bool free_to_keep(void *p)
{
    if ((uintptr_t)p - hot.region_base >= hot.region_bytes || (uintptr_t)p % SLICE_BYTES != 0 ||
        slice_at(slice_of(p))->kind != slice_large || !child_is_noticed())
        return false;
    const bool was = short_way_begin();
    const bool is_kept = large_span_keep(p);
    short_way_end(was);
    return is_kept;
}

static void free_large(void *p, struct block block)
{
    if (!slow_enter()) {
        large_give_later(p);
        return;
    }
    large_give_deferred();
    if (block.kind == block_mapping && !rcs_is_suspended())
        manager_hint_unmapping(block.bytes);
    bool freed = block.kind == block_large ? large_span_give(p) : mapping_give(p);
    slow_leave_and_hint(slow_gave);
    if (!freed) /* by another thread, since it was looked up */
        free_double(p);
}

/* What no quick look tells. */
static NOINLINE void free_after_search(void *p)
{
    struct block block = block_find(p);
    switch (block.kind) {
    case block_superblock:
        if (sync_mode == sync_rcs)
            free_by_section(block.superblock, p);
        else
            free_locked(block.superblock, p);
        return;
    case block_signal_safe:
        if (!signal_safe_give(p))
            free_double(p); /* by two threads at once */
        return;
    case block_quarantined:
        return;
    case block_large:
    case block_mapping:
        free_large(p, block);
        return;
    case block_invalid:
    case block_free:
        report_block("free", p, block);
        return;
    }
}

/* Anything but a large block that is kept. */
static NOINLINE void free_otherwise(void *p)
{
    if (free_in_locked_superblock(p) || p == NULL || likely(free_in_superblock(p)))
        return;
    free_after_search(p);
}

NOINLINE void free_slow(void *p)
{
    if (!free_to_keep(p))
        free_otherwise(p);
}

COLD void free_double(void *p)
{
    report_double_free("free", p);
}
