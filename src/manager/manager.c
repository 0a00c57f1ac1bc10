/* SPDX-License-Identifier: MIT */
#include "manager/manager.h"

#include <errno.h>

#include "base/bits.h"
#include "heap/demand.h"
#include "heap/large.h"
#include "heap/purge.h"
#include "heap/span.h"
#include "manager/bell.h"
#include "manager/clone.h"
#include "manager/jobs.h"
#include "manager/notice.h"
#include "manager/place.h"
#include "manager/report.h"
#include "options/options.h"
#include "os/os.h"
#include "rcs/hot.h"
#include "rcs/rcs.h"

/* Slow paths between two wakes: a wake costs the program as much as five page faults. */
#define NOTICES_PER_WAKE 256u
/* Slow paths between two looks whether one can be started, or whether what is in use is resident. */
#define ASK_EVERY 16u
/* How often, while awake, it looks whether it is in the program's way; and how long it stays away then. */
#define PLACE_LOOK_NS 500000000ull
#define AWAY_NS 1000000000ull
/* At a fork: how long the program waits for it to leave, and how long it stays away. */
#define LEAVE_NS_MAX 10000000ull
#define FORKING_NS   250000000ull
#define STACK_BYTES (256ul << 10)
/* Below the thread pointer lie the static thread-local variables of every library, above it libc's thread structure
 * with errno, the stack protector's canary and the rseq area: room enough for all of them. */
#define THREAD_BLOCK_HALF (64ul << 10)

_Atomic uint32_t manager_state = manager_absent;

/* Defined where changes of credentials park the manager: in the shared library. */
extern const char manager_sees_credentials __attribute__((weak));

/* Starting, parking: program threads only, with all signals blocked, since a handler may park. */
static struct lock control = LOCK_FREE;
static uint64_t signals_before_fork;
static _Atomic uint32_t tid;            /* of the thread; the kernel clears it when it has left our memory */
static uint32_t last_tid;               /* of the last one started; 0 once it is known to be gone */
static _Atomic uint32_t notices, asked;
static size_t start_bytes = MANAGER_START_BYTES; /* in use: from here on it is worthwhile */
static uint32_t starter;                /* thread that started it, and the cpu it did so on */
static unsigned starter_cpu;
static _Atomic uint64_t away_until_ns;
static _Atomic unsigned park_depth;
static _Atomic unsigned calls; /* of park_depth, for the time of a call */
THREAD_LOCAL unsigned own_calls;
static _Atomic uint64_t cpu_us;
static char *block; /* stack and thread block, kept for the next thread */

uint64_t manager_cpu_us(void)
{
    return atomic_load_explicit(&cpu_us, memory_order_relaxed);
}

/* What forbids it in between stays. */
static bool change_state(enum manager_state from, enum manager_state to)
{
    uint32_t seen = from;
    return atomic_compare_exchange_strong(&manager_state, &seen, to);
}

/* ---- the thread ---- */

static void sleep_until(uint64_t when_ns)
{
    uint32_t heard = bell_count();
    if (atomic_load(&manager_is_called_off) || atomic_load(&heap_demand) != demand_none)
        return;
    if (when_ns != UINT64_MAX)
        return bell_sleep(heard, when_ns);
    change_state(manager_busy, manager_asleep);
    bell_sleep_long(heard);
    change_state(manager_asleep, manager_busy);
}

static void stay_away(enum manager_state from, uint64_t for_ns)
{
    atomic_store(&away_until_ns, os_now_ns() + for_ns);
    change_state(from, manager_away);
}

/* There is no processor to spare at present: its slow paths look again, once in a while. */
static void go_away(void)
{
    stay_away(manager_busy, AWAY_NS);
}

/* Until it is to stop, or in the way. */
static void work(void)
{
    uint64_t next = UINT64_MAX, look_ns = 0;
    while (!atomic_load(&manager_is_called_off)) {
        uint64_t now = os_now_ns();
        if (now >= look_ns) {
            look_ns = now + PLACE_LOOK_NS;
            if (!place_is_spare(starter))
                return go_away();
        }
        if (next == UINT64_MAX)
            jobs_rouse(job_on_clock, now);
        if (atomic_exchange(&heap_demand, demand_none) != demand_none)
            jobs_rouse(job_on_demand, now);
        next = jobs_run(now);
        atomic_store_explicit(&cpu_us, os_thread_cpu_us(), memory_order_relaxed);
        sleep_until(next);
    }
}

/* What was left for it since it was made is done, and no more is. */
static void stop_helping(void)
{
    atomic_store(&mapping_is_helped, false);
    unmap_run(0);
}

static void serve(void)
{
    provision_start();
    lock_take(&purge_lock); /* no fork in the middle: the child would have the page */
    report_open();
    lock_release(&purge_lock);
    work();
    atomic_store(&memory_is_short, false);
    report_close();
}

static void run(void)
{
    /* Often left on the cpu it was made on, it would read its files there while the program waits. */
    os_leave_cpu(starter_cpu);
    /* Sharing the program's file descriptors would be seen: numbers taken that it expects, files kept open. */
    if (!os_thread_settle("sutler-manager"))
        manager_forbid();
    else if (!place_is_spare(starter))
        go_away();
    else
        serve();
    stop_helping();
    change_state(manager_busy, manager_absent);
}

/* ---- starting and stopping; `control` is held ---- */

/* Its sections must find the cid of nobody where they look for it, and the kernel nothing at all.  Where libc has
 * the rseq area among very large thread-local variables that is beyond the thread block. */
static bool thread_block_covers(ptrdiff_t offset)
{
    return offset >= -(ptrdiff_t)THREAD_BLOCK_HALF && offset + CACHE_LINE <= (ptrdiff_t)THREAD_BLOCK_HALF;
}

static bool is_wanted_ever(void)
{
    if (sync_mode == sync_rcs && !(thread_block_covers(hot.rseq) && thread_block_covers(hot.cid)))
        return false;
    if (option_get(option_manager) == manager_off)
        return false;
    if (option_get(option_manager) == manager_on)
        return true;
    /* In doubt (an emulator or debugger without rseq, privileges that could be dropped unseen): not. */
    bool sees_credentials = &manager_sees_credentials != NULL;
    return sync_mode == sync_rcs && (sees_credentials || !os_is_privileged());
}

static void ask_to_stop(void)
{
    atomic_store(&manager_is_called_off, true);
    bell_ring();
}

/* Returns 0 or -errno. */
static long start_locked(void)
{
    if (block == NULL)
        block = os_map(STACK_BYTES + 2 * THREAD_BLOCK_HALF);
    if (block == NULL)
        return -ENOMEM;
    char *thread_pointer = block + STACK_BYTES + THREAD_BLOCK_HALF;
    os_thread_block_prepare(thread_pointer);
    if (sync_mode == sync_rcs)
        *(uint32_t *)(thread_pointer + hot.cid) = slot_nobody;
    wait_not_counted(thread_pointer);
    bell_note_leader();
    starter = os_thread_id();
    starter_cpu = os_current_place().cpu;
    atomic_store(&manager_is_called_off, false);
    atomic_store(&tid, 1); /* until the kernel writes it */
    atomic_store(&mapping_is_helped, true);
    long result = clone_thread(run, block + STACK_BYTES, thread_pointer, &tid);
    if (result < 0) {
        stop_helping();
        atomic_store(&tid, 0);
        return result;
    }
    last_tid = (uint32_t)result;
    /* Meanwhile, by a handler, which does not wait: */
    if (atomic_load(&park_depth) != 0 || atomic_load(&manager_state) == manager_forbidden)
        ask_to_stop();
    return 0;
}

/* The state is busy until it is known whether there can be one. */
static void try_start_locked(void)
{
    if (!is_wanted_ever())
        return manager_forbid();
    if (!place_may_be_spare())
        return go_away();
    long error = start_locked();
    if (error == -EAGAIN || error == -ENOMEM) /* no process more for this user, no memory: not now */
        go_away();
    else if (error != 0)
        manager_forbid();
}

/* Returns whether it has gone before so much time has passed. */
static bool stop_locked(uint64_t most_ns)
{
    ask_to_stop();
    uint32_t running;
    uint64_t since_ns = os_now_ns(), past_ns = 0;
    while ((running = atomic_load(&tid)) != 0 && past_ns < most_ns) {
        os_futex_wait_shared(&tid, running, most_ns - past_ns);
        past_ns = os_now_ns() - since_ns;
    }
    wait_count(since_ns);
    return running == 0;
}

/* The kernel counts a thread for a moment longer, and refuses new namespaces meanwhile. */
static void wait_gone_locked(void)
{
    if (last_tid != 0)
        os_thread_wait_gone(last_tid);
    last_tid = 0;
}

/* A program of one thread may see that it has two when it forks (Python looks, and warns): so there is none at that
 * moment, nor right after it. */
static void leave_for_fork_locked(void)
{
    const unsigned one_and_the_manager = 2;
    if (last_tid == 0 || os_thread_count() != one_and_the_manager || !stop_locked(LEAVE_NS_MAX))
        return;
    wait_gone_locked();
    stay_away(manager_absent, FORKING_NS);
    atomic_store(&asked, 0);
}

/* Nobody wants it gone, and the last one is. */
static bool may_start(void)
{
    return atomic_load(&park_depth) == 0 && atomic_load(&tid) == 0;
}

/* What is in use may be address space rather than memory: a superblock of large blocks is 4 MiB, with one block in it
 * or all.  The system is asked once in a while. */
static bool is_resident(void)
{
    return atomic_fetch_add(&asked, 1) % ASK_EVERY == 0 && os_resident_peak_bytes() >= MANAGER_START_BYTES;
}

static size_t in_use_bytes(void)
{
    return span_in_use_bytes() + mapping_in_use_bytes();
}

/* A forked child has its parent's heap and mostly lives for a moment: it is given time. */
static bool is_worthwhile(void)
{
    size_t in_use = in_use_bytes();
    bool is_large = in_use >= start_bytes ||
                    (in_use >= MANAGER_START_BYTES && atomic_fetch_add(&notices, 1) >= 4 * NOTICES_PER_WAKE);
    return is_large && (option_get(option_manager) == manager_on || is_resident());
}

COLD void manager_notice_slow(enum manager_state state)
{
    if (state == manager_busy || state == manager_asleep) {
        uint32_t raised = demand_raised;
        bool is_told = atomic_compare_exchange_strong(&heap_demand, &raised, demand_told);
        if (is_told || (state == manager_asleep && atomic_fetch_add(&notices, 1) % NOTICES_PER_WAKE == 0))
            bell_ring();
        return;
    }
    if (state == manager_away) {
        if (atomic_fetch_add(&notices, 1) % ASK_EVERY != 0 || os_now_ns() < atomic_load(&away_until_ns))
            return;
        change_state(manager_away, manager_absent);
        state = manager_absent;
    }
    if (state != manager_absent || !may_start() || !is_worthwhile())
        return;
    uint64_t signals = os_block_signals();
    if (lock_try(&control)) {
        if (may_start() && change_state(manager_absent, manager_busy))
            try_start_locked();
        lock_release(&control);
    }
    os_restore_signals(signals);
}

COLD void manager_notice_unmapping_slow(void)
{
    atomic_store(&asked, 0); /* it is asked now */
    manager_notice_slow(manager_absent);
}

void manager_park(bool may_wait)
{
    atomic_fetch_add(&park_depth, 1);
    if (!may_wait) {
        ask_to_stop();
        return;
    }
    uint64_t signals = os_block_signals();
    lock_take(&control);
    if (atomic_load(&tid) != 0)
        stop_locked(UINT64_MAX);
    wait_gone_locked();
    lock_release(&control);
    os_restore_signals(signals);
}

void manager_resume(void)
{
    unsigned depth = atomic_load(&park_depth);
    while (depth > 0 && !atomic_compare_exchange_weak(&park_depth, &depth, depth - 1))
        continue;
}

void manager_call_begins(void)
{
    own_calls++;
    atomic_fetch_add(&calls, 1);
}

void manager_call_ends(void)
{
    atomic_fetch_sub(&calls, 1);
    own_calls--;
}

/* In a child, which has only the calling thread: the others will not come back to resume. */
static void forget_calls(void)
{
    unsigned others = atomic_load(&calls) - own_calls, depth = atomic_load(&park_depth);
    atomic_store(&park_depth, depth > others ? depth - others : 0);
    atomic_store(&calls, own_calls);
}

void manager_forbid(void)
{
    atomic_store(&manager_state, manager_forbidden);
}

/* ---- fork ---- */

void manager_fork_prepare(void)
{
    uint64_t signals = os_block_signals();
    lock_take(&control);
    signals_before_fork = signals;
    leave_for_fork_locked();
    lock_take(&purge_lock); /* all work that changes the heap is done under it */
}

void manager_fork_parent(void)
{
    uint64_t signals = signals_before_fork;
    lock_release(&purge_lock);
    lock_release(&control);
    os_restore_signals(signals);
}

void manager_fork_child(void)
{
    manager_forget();
    bell_note_leader();
    os_restore_signals(signals_before_fork);
}

void manager_forget(void)
{
    lock_reset(&purge_lock);
    bell_forget_leader();
    report_forget();
    atomic_store(&memory_is_short, false);
    atomic_store(&mapping_is_helped, false);
    start_bytes = in_use_bytes() + MANAGER_START_BYTES;
    atomic_store(&notices, 0);
    atomic_store(&tid, 0);
    last_tid = 0;
    forget_calls();
    uint32_t state = atomic_load(&manager_state);
    if (state != manager_forbidden)
        atomic_store(&manager_state, manager_absent);
    lock_reset(&control);
}
