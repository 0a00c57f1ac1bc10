/* SPDX-License-Identifier: MIT
 *
 * fork.  Sections need nothing: each changes the heap by one store, which the child's copy of memory has or has not.  Slow
 * paths hold locks, so the fork handlers take them all first and the child finds every structure whole.
 *
 * _Fork and raw clone run no handlers.  A page that reads as zero in the child tells it; if any lock was held at that
 * moment by a thread that does not exist in the child, what it protected is abandoned rather than trusted: memory is
 * lost to the child, never handed out twice.
 */
#include <pthread.h>

#include "core/core.h"
#include "heap/large.h"
#include "heap/meta.h"
#include "heap/span.h"
#include "manager/manager.h"
#include "os/os.h"

static uint32_t *parent_mark; /* on a page wiped on fork: not zero in the process that wrote it */

/* Forks from signal handlers that interrupted a slow path, or a fork, of this thread: it may hold the very locks. */
THREAD_LOCAL unsigned nested_forks;

/* The order of heap.h.  The thread stays inside a slow path until the locks are free again: handlers of other libraries
 * and signal handlers in between get emergency blocks. */
static void prepare(void)
{
    if (!slow_enter()) {
        nested_forks++;
        return;
    }
    manager_fork_prepare();
    lock_take(&binding_lock);
    for (unsigned i = 0; i < heap_total; i++)
        lock_take(&heap_list[i]->lock);
    lock_take(&global_heap.lock);
    lock_take(&span_lock);
    lock_take(&mapping_lock);
}

static void release_all(void)
{
    lock_release(&mapping_lock);
    lock_release(&span_lock);
    lock_release(&global_heap.lock);
    for (unsigned i = heap_total; i-- > 0;)
        lock_release(&heap_list[i]->lock);
    lock_release(&binding_lock);
}

static bool was_nested(void)
{
    if (nested_forks == 0)
        return false;
    nested_forks--;
    return true;
}

static void in_parent(void)
{
    if (was_nested())
        return;
    release_all();
    manager_fork_parent();
    slow_leave();
}

static void in_child(void)
{
    if (was_nested())
        return; /* its next slow path finds the mark wiped */
    if (parent_mark != NULL)
        *parent_mark = 1;
    release_all();
    manager_fork_child();
    slow_leave();
}

void fork_register(void)
{
    pthread_atfork(prepare, in_parent, in_child);
}

bool fork_watch(void)
{
    uint32_t *mark = os_map(os_page_bytes);
    if (mark == NULL)
        return false;
    *mark = 1;
    if (os_wipe_on_fork(mark, os_page_bytes))
        parent_mark = mark;
    return true;
}

/* Nobody uses the heap any more; its blocks are freed remotely, for ever. */
static void abandon(struct heap *h)
{
    for (unsigned slot = 0; slot < slot_count; slot++)
        if (heap_of_cid[slot] == h)
            heap_of_cid[slot] = &empty_heap;
    h->x_slot = SLOT_NONE;
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        h->active[c] = &empty_superblock;
        h->class[c] = (struct class_lists){0};
    }
    lock_reset(&h->lock);
}

static COLD void orphaned(void)
{
    *parent_mark = 1;
    lock_reset(&binding_lock);
    for (unsigned i = 0; i < heap_total; i++)
        if (lock_is_held(&heap_list[i]->lock))
            abandon(heap_list[i]);
    if (lock_is_held(&global_heap.lock))
        abandon(&global_heap);
    if (lock_is_held(&span_lock))
        span_forget_all();
    lock_reset(&mapping_lock);
    manager_fork_child();
}

void fork_notice(void)
{
    if (parent_mark != NULL && unlikely(*parent_mark == 0))
        orphaned();
}
