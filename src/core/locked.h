/* SPDX-License-Identifier: MIT
 *
 * What the fast paths are to sections, in lock mode: a pop or a push under the heap's lock, taken by one
 * compare-and-swap and released by a store.  Inline, one try each: nobody waits here, and whatever is not simple (a
 * list that is empty, a lock that is held, a thread that was interrupted inside the allocator, a child that has to
 * recover first) is left to the slow path.
 *
 * A pop takes from the heap the thread's last slow path was on.  When two threads are on one heap sooner or later one
 * finds the lock held; its slow path asks which cpu it runs on.
 */
#ifndef SUTLER_CORE_LOCKED_H
#define SUTLER_CORE_LOCKED_H

#include "core/child.h"
#include "core/core.h"

/* From the start on, in lock mode. */
extern bool locked_paths_are_open;

/* As slow_enter. */
static inline bool locked_enter(void)
{
    if (unlikely(in_slow_path) || unlikely(!child_is_noticed()))
        return false;
    in_slow_path = true;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    return true;
}

static inline void locked_leave(void)
{
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    in_slow_path = false;
}

/* Lock held.  NULL: the active superblock's list is empty, or damaged. */
static inline void *pop_under_lock(struct heap *h, unsigned c)
{
    ASSERT(lock_is_mine(&h->lock));
    struct superblock *s = h->active[c];
    uint64_t list = s->freelist;
    if (unlikely(list == 0))
        return NULL;
    uint64_t next = next_get(freelist_top(list));
    if (unlikely(freelist_count(next) + 1 != freelist_count(list)))
        return NULL;
    __atomic_store_n(&s->freelist, next, __ATOMIC_RELEASE);
    return freelist_top(list);
}

/* Lock of the owner held. */
static inline enum hot_pushed push_under_lock(void *block, struct superblock *s)
{
    uint64_t list = s->freelist, pushed = freelist_pack(block, freelist_count(list) + 1);
    if (unlikely(freelist_top(list) == block))
        return hot_double;
    next_set(block, list);
    __atomic_store_n(&s->freelist, pushed, __ATOMIC_RELEASE); /* the next first, for the child of a fork */
    return unlikely(freelist_count(pushed) == s->threshold) ? hot_pushed_notify : hot_pushed;
}

/* As hot_pop. */
static inline void *locked_pop(unsigned c)
{
    if (!locked_enter())
        return NULL;
    void *block = NULL;
    struct heap *h = __atomic_load_n(&heap_of_cid[sync_slot_last], __ATOMIC_ACQUIRE);
    if (likely(lock_try(&h->lock))) {
        block = pop_under_lock(h, c);
        lock_release_quickly(&h->lock);
    }
    locked_leave();
    return block;
}

/* As hot_push, but to whichever heap owns the superblock.  hot_foreign: none, or another one by now. */
static inline enum hot_pushed locked_push(void *block, struct superblock *s)
{
    struct heap *h = superblock_owner(s);
    if (unlikely(h == NULL))
        return hot_foreign;
    if (!locked_enter())
        return hot_aborted;
    enum hot_pushed pushed = hot_aborted;
    if (likely(lock_try(&h->lock))) {
        pushed = likely(superblock_owner(s) == h) ? push_under_lock(block, s) : hot_foreign;
        lock_release_quickly(&h->lock);
    }
    locked_leave();
    return pushed;
}

/* For malloc(size) and operator new(size): NULL if it takes the slow path, or this is no lock mode. */
static inline void *locked_take(size_t size)
{
    return size <= CLASS_BYTES_MAX && locked_paths_are_open ? locked_pop(size_class_of(size)) : NULL;
}

#endif
