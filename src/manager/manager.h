/* SPDX-License-Identifier: MIT
 *
 * The manager: a second thread that does system processing (Herrmann & Wilsey 2010) where the program has a core to
 * spare.  It is started lazily, once the heap has grown past MANAGER_START_BYTES, by the slow path that notices; it
 * runs its jobs (jobs.c) on a clock while the heap changes, and sleeps without any wakeup once there is nothing left
 * to do.
 *
 * It is invisible: made by a raw clone, so that libc does not know of it and a single-threaded program stays
 * single-threaded; all signals blocked; its own file descriptor table, emptied.  It owns no heap: its thread block
 * names a cid that no heap belongs to, so every section it tries says "moved" and it works on superblocks taken
 * offline.
 *
 * Whatever it does can also be left undone: where it cannot or must not run, the program goes on without it.
 */
#ifndef SUTLER_MANAGER_MANAGER_H
#define SUTLER_MANAGER_MANAGER_H

#include <stdatomic.h>

#include "base/compiler.h"

#define MANAGER_START_BYTES ((size_t)16 << 20)

enum manager_state {
    manager_absent,    /* may be started */
    manager_busy,      /* running, or about to look for work */
    manager_asleep,    /* until woken */
    manager_away,      /* none for a while: no processor is spare */
    manager_forbidden, /* it cannot or must not run in this process */
};

extern _Atomic uint32_t manager_state;
/* Stops the manager and waits until its thread is gone (it may be started again after manager_resume).  For what
 * must see a process of only its own threads: changes of credentials, namespaces, seccomp.  Calls nest.  A signal
 * handler that interrupted a slow path may not wait: the manager may be waiting for a lock of that path; it then
 * stops as soon as it can.  [signal] */
void manager_park(bool may_wait);
void manager_resume(void);
/* Around a call for whose time the manager is parked: a child forked meanwhile by another thread is not in it.  [signal] */
void manager_call_begins(void);
void manager_call_ends(void);
/* From now on there is none in this process.  The caller has it parked.  [signal] */
void manager_forbid(void);

/* Around fork: before, waits until the manager is between two pieces of work and keeps it there, or, in a program of
 * one thread, until it has left; signals are blocked. */
void manager_fork_prepare(void);
void manager_fork_parent(void);
void manager_fork_child(void);
/* In a child made without: there is no manager in it. */
void manager_forget(void);

/* Cpu time the manager has used, in microseconds; passes made; 0 if it never ran. */
uint64_t manager_cpu_us(void);

#endif
