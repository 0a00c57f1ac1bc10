/* SPDX-License-Identifier: MIT
 *
 * fork.  The child has the memory as it was at one instant, and only the thread that forked.
 *
 * No lock of the heap is taken before.  Between our handler and the fork libc and other libraries take locks of their
 * own, stdio's for one, and whoever holds those may be about to allocate: it would wait for us, and we for it.  So
 * other threads may be caught anywhere in their slow paths, and the child makes whole what they had half-done, before
 * it goes on (heap/recover.c).  Sections need nothing: each changes the heap by one store, which the child's copy of
 * memory has or has not.  Only the manager, which holds no lock of anybody else's, is waited for, and not for long: the
 * child of a program of one thread then has nothing to recover.
 *
 * _Fork and raw clone run no handlers.  A page that reads as zero in the child tells it; its first slow path recovers.
 * So does that of a child made by a signal handler that had interrupted a slow path: what its own thread has in hand
 * there is not lost.
 */
#include <pthread.h>
#include <stdatomic.h>

#include "core/child.h"
#include "core/core.h"
#include "heap/heap.h"
#include "heap/mapping_cache.h"
#include "heap/pass.h"
#include "manager/manager.h"

/* Of the thread that forks, before it does: whether the manager had nothing in its hands; and how many recoveries there
 * had been. */
THREAD_LOCAL bool manager_rests;
THREAD_LOCAL uint8_t recoveries_before;

static void prepare(void)
{
    manager_rests = manager_fork_prepare(!in_slow_path);
    recoveries_before = child_recoveries();
}

/* Nothing can be half-done: there was no other thread, and the manager had nothing in its hands.  Locks tell of threads
 * that libc does not know. */
static bool is_whole(void)
{
    return *os_single_threaded() != 0 && manager_rests && !heap_is_locked();
}

static void in_child(void)
{
    if (child_recoveries() != recoveries_before)
        return; /* a signal handler came first */
    bool whole = !in_slow_path && is_whole();
    atomic_store(child_mark, whole ? child_known : child_new);
    if (!slow_enter()) /* which recovers; or later, in a handler that had interrupted a slow path */
        return;
    if (whole) {
        mapping_cache_recover();
        child_begin_anew();
    }
    slow_leave();
}

void fork_register(void)
{
    pthread_atfork(prepare, pass_resume, in_child);
}
