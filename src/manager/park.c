/* SPDX-License-Identifier: MIT
 *
 * Parking the manager, for calls that must see a process of only its own threads, and what fork does with it.
 *
 * Whoever needs the manager gone adds to `parks`, asks it to stop, and waits until the state and then the thread say
 * so; none is started while `parks` is not zero (start.c).
 */
#include "heap/decay.h"
#include "heap/demand.h"
#include "heap/large.h"
#include "heap/pass.h"
#include "manager/headroom.h"
#include "manager/wake.h"
#include "manager/hint.h"
#include "manager/report.h"
#include "manager/state.h"
#include "os/os.h"

/* How long a fork waits for the manager. */
#define FORK_WAIT_NS 10000000ull
/* How long it stays away after a park or a fork.  More of them often follow, and to start it again costs as much. */
#define PARKED_NS 250000000ull

THREAD_LOCAL uint16_t own_calls; /* the calling thread's part of manager_life.calls */

static uint64_t left_ns(uint64_t until_ns)
{
    uint64_t now_ns = os_now_ns();
    return now_ns < until_ns ? until_ns - now_ns : 0;
}

/* Waits at most so long for a manager that was asked to stop; true if it has gone. */
static bool wait_gone(uint64_t most_ns)
{
    uint64_t since_ns = os_now_ns(), until_ns = most_ns < UINT64_MAX - since_ns ? since_ns + most_ns : UINT64_MAX;
    bool waited = false;
    for (uint32_t word; (word = atomic_load(&manager_life.word)), left_ns(until_ns) != 0; waited = true) {
        if (manager_state_in(word) != manager_busy && manager_state_in(word) != manager_asleep)
            break;
        os_futex_wait_for(&manager_life.word, word, left_ns(until_ns));
    }
    for (uint32_t tid; (tid = atomic_load(&manager_life.tid)) != 0 && left_ns(until_ns) != 0; waited = true)
        os_futex_wait_shared(&manager_life.tid, tid, left_ns(until_ns));
    if (waited)
        wait_count(since_ns);
    if (atomic_load(&manager_life.tid) != 0)
        return false;
    /* The kernel counts a thread for a moment longer, and refuses new namespaces meanwhile. */
    uint32_t gone = atomic_load(&manager_life.last_tid);
    if (gone != 0) {
        os_thread_wait_gone(gone);
        atomic_compare_exchange_strong(&manager_life.last_tid, &gone, 0);
    }
    return true;
}

void manager_park(bool may_wait)
{
    atomic_fetch_add(&manager_life.parks, 1); /* before it looks at the state: partner of make_thread */
    manager_ask_to_stop();
    if (may_wait)
        wait_gone(UINT64_MAX);
}

void manager_resume(void)
{
    manager_stay_away(PARKED_NS);
    uint32_t parks = atomic_load(&manager_life.parks);
    while (parks > 0 && !atomic_compare_exchange_weak(&manager_life.parks, &parks, parks - 1))
        continue;
}

void manager_call_begins(void)
{
    own_calls++;
    atomic_fetch_add(&manager_life.calls, 1);
}

void manager_call_ends(void)
{
    atomic_fetch_sub(&manager_life.calls, 1);
    own_calls--;
}

bool manager_is_anothers(void)
{
    return manager_life.process != 0 && manager_life.process != os_process_id();
}

/* ---- fork ---- */

/* A program of one thread may notice at a fork that it has two (Python warns about it).  So the manager leaves before,
 * and stays away for a while. */
static void leave_for_fork(void)
{
    const unsigned one_and_the_manager = 2;
    if (atomic_load(&manager_life.tid) == 0 || os_thread_count() != one_and_the_manager)
        return;
    manager_stay_away(PARKED_NS);
    wait_gone(FORK_WAIT_NS);
    manager_start_look();
}

bool manager_fork_prepare(bool may_wait)
{
    if (may_wait)
        leave_for_fork();
    return pass_pause(FORK_WAIT_NS);
}

/* In a child only the calling thread is left: calls of other threads will not end. */
static void forget_calls(void)
{
    uint32_t others = atomic_load(&manager_life.calls) - own_calls, parks = atomic_load(&manager_life.parks);
    atomic_store(&manager_life.parks, parks > others ? parks - others : 0);
    atomic_store(&manager_life.calls, own_calls);
}

void manager_forget(void)
{
    pass_forget();
    decay_forget();
    headroom_forget();
    wake_forget_leader();
    report_forget();
    atomic_store(&memory_is_short, false);
    atomic_store(&unmap_is_async, false);
    atomic_store(&manager_is_missing, manager_state() == manager_forbidden);
    manager_start_forget();
    atomic_store(&manager_life.tid, 0);
    atomic_store(&manager_life.last_tid, 0);
    atomic_store(&manager_life.not_before_ns, 0);
    manager_life.process = 0;
    forget_calls();
    uint32_t word = atomic_load(&manager_life.word);
    if (manager_state_in(word) != manager_forbidden)
        atomic_store(&manager_life.word, (word & ~MANAGER_STATE_MASK) | manager_absent);
}
