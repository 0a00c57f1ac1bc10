/* SPDX-License-Identifier: MIT
 *
 * The manager: a second thread that does system processing (Herrmann & Wilsey 2010) where the program has a core to
 * spare.  It is started lazily, once the heap has grown past MANAGER_START_BYTES, by the slow path that notices; it
 * runs its jobs (jobs.c) on a clock while the heap changes, and sleeps once there is nothing left to do.  (Once a
 * minute it looks whether it is alone: wake.c.)
 *
 * It is a guest in the process: made by a raw clone, so that libc does not know of it and a single-threaded program
 * stays single-threaded; no signal reaches it but the one libraries send to all threads; no capability; a file
 * descriptor table of its own, emptied.  It owns no heap: its thread block names a cid that no heap belongs to, so
 * every section it tries says "moved" and it works on superblocks taken offline.
 *
 * Whatever it does can also be left undone: where it cannot or must not run, the program goes on without it.
 */
#ifndef SUTLER_MANAGER_MANAGER_H
#define SUTLER_MANAGER_MANAGER_H

#include <stdatomic.h>

#include "base/compiler.h"

#define MANAGER_START_BYTES ((size_t)8 << 20)

enum manager_state {
    manager_absent,    /* may be started, but see parks and not_before_ns */
    manager_busy,      /* being started, running, or about to look for work */
    manager_asleep,    /* until woken, or something but the clock is due */
    manager_forbidden, /* it cannot or must not run in this process */
};

/* Its whole life (state.c, start.c, loop.c, park.c). */
struct manager_life {
    _Atomic uint32_t word;          /* enum manager_state, and above it the generation: how many there have been */
    _Atomic uint32_t tid;           /* of the thread; the kernel clears it when the thread has left our memory */
    _Atomic uint32_t parks;         /* calls under way that want it gone */
    _Atomic uint32_t calls;         /* of those, the ones that will end in the thread that made them */
    _Atomic uint64_t not_before_ns; /* none is started until then; 0: whenever it is worthwhile */
    _Atomic uint32_t last_tid;      /* of the last one started; 0 once it is known to be gone */
    _Atomic uint64_t cpu_us;        /* cpu time it has used; 0 if it never ran */
    uint32_t process;               /* the one it was started in; 0: none was */
    struct {
        uint32_t tid;
        unsigned cpu;
    } starter; /* the thread of the program that started it, and the cpu it did so on */
};
extern struct manager_life manager_life;

/* Its stack and thread block; NULL until there was one. */
extern char *manager_memory;
#define MANAGER_MEMORY_BYTES ((size_t)384 << 10)

#define MANAGER_STATE_BITS 2
#define MANAGER_STATE_MASK ((1u << MANAGER_STATE_BITS) - 1)

static inline enum manager_state manager_state(void)
{
    return (enum manager_state)(atomic_load_explicit(&manager_life.word, memory_order_relaxed) & MANAGER_STATE_MASK);
}

/* It works, or sleeps and can be woken. */
static inline bool manager_is_there(void)
{
    const enum manager_state state = manager_state();
    return state == manager_busy || state == manager_asleep;
}

/* Stops the manager and waits until its thread is gone.  One may be started again a while after manager_resume.  For
 * what must see a process of only its own threads: changes of credentials, namespaces, seccomp.  Calls nest.  A signal
 * handler that interrupted a slow path may not wait: the manager may be waiting for a lock of that path; it then stops
 * as soon as it can.  [signal] */
void manager_park(bool may_wait);
void manager_resume(void);
/* Around a call for whose time the manager is parked: a child forked meanwhile by another thread is not in it.
 * [signal] */
void manager_call_begins(void);
void manager_call_ends(void);
/* From now on there is no manager in this process.  The caller has it parked. [signal] */
void manager_forbid(void);
/* True in a process that shares this memory (by vfork or clone) and is not the one the manager belongs to. */
bool manager_is_anothers(void);

/* True where changes of credentials park the manager: in the shared library, which the program's calls come to. */
extern bool manager_sees_credentials;

/* Before fork: if the program has one thread the manager leaves, else it stops between two pieces of work.  Waits for
 * that only if it may, and not long.  Returns whether the manager has nothing in its hands.  The parent calls
 * pass_resume afterwards. */
bool manager_fork_prepare(bool may_wait);
/* In any child: there is no manager in it. */
void manager_forget(void);

#endif
