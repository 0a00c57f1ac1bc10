/* SPDX-License-Identifier: MIT
 *
 * fork.  Sections need nothing: each changes the heap by one store, which the child's copy of memory has or has not.
 * Slow paths hold locks, so the fork handlers take them all first and the child finds every structure whole.
 *
 * _Fork and raw clone run no handlers.  A page that reads as zero in the child tells it; the child's first slow path
 * makes whole again what threads that do not exist in it had left half-done (heap/recover.c).
 */
#include <pthread.h>
#include <stdatomic.h>

#include "core/core.h"
#include "core/fork.h"
#include "heap/large.h"
#include "heap/mapping_cache.h"
#include "heap/span.h"
#include "manager/manager.h"
#include "os/os.h"

/* On a page that reads as zero in a child. */
enum { mark_new = 0, mark_known, mark_recovering };
static _Atomic uint32_t *parent_mark;
static uint32_t process; /* whose memory this is; 0: not known yet */

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
    process = os_process_id();
    if (parent_mark != NULL)
        *parent_mark = mark_known;
    mapping_cache_recover();
    release_all();
    manager_fork_child();
    mapping_unmap_leaving(); /* what the parent's manager was to do and the child has a copy of */
    slow_leave();
}

void fork_register(void)
{
    pthread_atfork(prepare, in_parent, in_child);
}

bool fork_watch(void)
{
    _Atomic uint32_t *mark = os_map(os_page_bytes);
    if (mark == NULL)
        return false;
    *mark = mark_known;
    process = os_process_id();
    if (os_wipe_on_fork((void *)mark, os_page_bytes))
        parent_mark = mark;
    return true;
}

/* The child may have started threads by now: one of them does it, the others wait. */
static COLD void orphaned(void)
{
    uint32_t seen = mark_new;
    if (atomic_compare_exchange_strong(parent_mark, &seen, mark_recovering)) {
        process = os_process_id();
        heap_recover();
        manager_forget();
        atomic_store(parent_mark, mark_known);
        return;
    }
    while (atomic_load(parent_mark) == mark_recovering)
        os_yield();
}

void fork_notice(void)
{
    if (parent_mark != NULL && unlikely(atomic_load_explicit(parent_mark, memory_order_acquire) != mark_known))
        orphaned();
}

bool fork_is_in_parents_memory(void)
{
    fork_notice();
    return process != 0 && process != os_process_id();
}
