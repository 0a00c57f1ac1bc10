/* SPDX-License-Identifier: MIT
 *
 * A pass is work that takes superblocks, spans or mappings out of the heap for a while: a purge, or a job of the
 * manager's.  Passes run one at a time, in batches; between two batches another pass may come in.
 *
 * A fork pauses the manager between two batches, where it holds no lock and nothing is taken out of the heap, so that a
 * child finds whole what the manager works on.  The forking thread holds no lock either while it waits for that: it may
 * be about to wait for a lock of libc whose holder wants to allocate.  For the same reason threads of the program are
 * not paused in their passes: one may hold the lock that the fork waits for.  What a fork catches half-done there, the
 * child makes whole (recover.c).
 */
#ifndef SUTLER_HEAP_PASS_H
#define SUTLER_HEAP_PASS_H

#include "heap/demand.h"
#include "os/lock.h"

/* What a purge takes. */
enum purge_what {
    purge_force, /* malloc_trim */
    purge_decay, /* what has not changed since the last purge pass: on the clock, while the program works */
    purge_idle,  /* the same, also where that breaks huge pages, and superblocks of large blocks with but a few of
                  * them free: then the manager's clock stops */
};

extern struct lock pass_lock;

/* Around a batch.  Begin with no lock held; the background thread waits here while a fork is under way. */
void pass_begin(void);
void pass_end(void);
/* The same for a thread of the program that can do without: false, at once, if another pass is under way. */
bool pass_try_begin(void);

/* Between two batches: lets in whoever waits. */
void pass_yield(void);
/* True if somebody waits: a long batch ends early. */
bool pass_is_wanted(void);
/* Between two batches of a purge: one on the manager's clock ends early if the manager is to leave. */
static inline bool pass_goes_on(enum purge_what what)
{
    return what == purge_force || !atomic_load_explicit(&manager_stop_requested, memory_order_relaxed) ||
           !background_thread_is_caller();
}

/* Before a fork: keeps the manager from beginning a batch, and waits for at most `most_ns` for the one it is in to end.
 * Returns whether the manager has nothing in its hands.  Calls nest. */
bool pass_pause(uint64_t most_ns);
/* After it, in the parent. */
void pass_resume(void);
/* After it, in the child: there is no other thread. */
void pass_forget(void);

#endif
