/* SPDX-License-Identifier: MIT */
#include "manager/manager.h"

#include "base/bits.h"
#include "heap/purge.h"
#include "heap/span.h"
#include "manager/clone.h"
#include "manager/jobs.h"
#include "manager/notice.h"
#include "manager/report.h"
#include "options/options.h"
#include "os/os.h"
#include "rcs/hot.h"
#include "rcs/rcs.h"

/* Slow paths between two wakes: a wake costs the program as much as five page faults. */
#define NOTICES_PER_WAKE 256u
#define STACK_BYTES (256ul << 10)
/* Below the thread pointer lie the static thread-local variables of every library, above it libc's thread structure
 * with errno, the stack protector's canary and the rseq area: room enough for all of them. */
#define THREAD_BLOCK_HALF (64ul << 10)

_Atomic uint32_t manager_state = manager_absent;

/* Defined where changes of credentials park the manager: in the shared library. */
extern const char manager_sees_credentials __attribute__((weak));

static struct lock control = LOCK_FREE; /* starting, parking: program threads only */
static _Atomic uint32_t tid;            /* of the thread; the kernel clears it when it has left our memory */
static uint32_t last_tid;               /* of the last one started; 0 once it is known to be gone */
static _Atomic uint32_t bell;           /* counts wakes */
static _Atomic uint32_t notices;
static _Atomic bool stop;
static unsigned park_depth;
static _Atomic uint64_t cpu_us;
static char *block; /* stack and thread block, kept for the next thread */

uint64_t manager_cpu_us(void)
{
    return atomic_load_explicit(&cpu_us, memory_order_relaxed);
}

/* ---- the thread ---- */

static void sleep_until(uint64_t when_ns)
{
    uint32_t heard = atomic_load(&bell);
    if (atomic_load(&stop) || atomic_load(&reserve_demand) != demand_none)
        return;
    if (when_ns == UINT64_MAX) {
        atomic_store(&manager_state, manager_asleep);
        /* A process whose last program thread left by a raw exit would stay for ever: look now and once in a while. */
        const uint64_t look_every_ns = 60000000000ull;
        while (atomic_load(&bell) == heard && !atomic_load(&stop)) {
            int status;
            if (os_is_alone(&status))
                os_thread_exit(status);
            os_futex_wait_for(&bell, heard, look_every_ns);
        }
        atomic_store(&manager_state, manager_busy);
        return;
    }
    uint64_t now = os_now_ns();
    if (when_ns > now)
        os_futex_wait_for(&bell, heard, when_ns - now);
}

static void run(void)
{
    os_thread_settle("sutler-manager");
    if (option_get(option_manager) != manager_on && os_cpu_quota_percent() < 200)
        return atomic_store(&manager_state, manager_forbidden); /* its time would be the program's */
    lock_take(&purge_lock); /* no fork in the middle: the child would have the page */
    report_open();
    lock_release(&purge_lock);
    uint64_t next = UINT64_MAX;
    while (!atomic_load(&stop)) {
        uint64_t now = os_now_ns();
        if (next == UINT64_MAX)
            jobs_rouse(job_on_clock, now);
        if (atomic_exchange(&reserve_demand, demand_none) != demand_none)
            jobs_rouse(job_on_demand, now);
        next = jobs_run(now);
        atomic_store_explicit(&cpu_us, os_thread_cpu_us(), memory_order_relaxed);
        sleep_until(next);
    }
    report_close();
}

/* ---- starting and stopping; `control` is held ---- */

static bool is_wanted(void)
{
    if (option_get(option_manager) == manager_off)
        return false;
    if (option_get(option_manager) == manager_on)
        return true;
    /* In doubt (an emulator or debugger without rseq, one cpu, privileges that could be dropped unseen): not. */
    bool sees_credentials = &manager_sees_credentials != NULL;
    return sync_mode == sync_rcs && os_cpus_allowed() >= 2 && (sees_credentials || !os_is_privileged());
}

static bool start_locked(void)
{
    if (block == NULL)
        block = os_map(STACK_BYTES + 2 * THREAD_BLOCK_HALF);
    if (block == NULL)
        return false;
    char *thread_pointer = block + STACK_BYTES + THREAD_BLOCK_HALF;
    os_thread_block_prepare(thread_pointer);
    if (sync_mode == sync_rcs)
        *(uint32_t *)(thread_pointer + hot.cid) = slot_nobody;
    atomic_store(&stop, false);
    atomic_store(&tid, 1); /* until the kernel writes it */
    uint64_t signals = os_block_signals();
    long result = clone_thread(run, block + STACK_BYTES, thread_pointer, &tid);
    os_restore_signals(signals);
    if (result < 0)
        atomic_store(&tid, 0);
    else
        last_tid = (uint32_t)result;
    return result > 0;
}

static void stop_locked(void)
{
    atomic_store(&stop, true);
    atomic_fetch_add(&bell, 1);
    os_futex_wake_one(&bell);
    uint32_t running;
    while ((running = atomic_load(&tid)) != 0)
        os_futex_wait_shared(&tid, running);
}

/* The kernel counts a thread for a moment longer, and refuses new namespaces meanwhile. */
static void wait_gone_locked(void)
{
    if (last_tid != 0)
        os_thread_wait_gone(last_tid);
    last_tid = 0;
}

static void ring(void)
{
    atomic_fetch_add(&bell, 1);
    os_futex_wake_one(&bell);
}

COLD void manager_notice_slow(enum manager_state state)
{
    if (state == manager_busy || state == manager_asleep) {
        uint32_t raised = demand_raised;
        bool is_pace = state == manager_asleep &&
                       atomic_fetch_add_explicit(&notices, 1, memory_order_relaxed) % NOTICES_PER_WAKE == NOTICES_PER_WAKE - 1;
        if (atomic_compare_exchange_strong(&reserve_demand, &raised, demand_told) || is_pace)
            ring();
        return;
    }
    if (state != manager_absent || span_counts().in_use_bytes < MANAGER_START_BYTES || !lock_try(&control))
        return;
    if (atomic_load(&manager_state) == manager_absent) {
        atomic_store(&manager_state, manager_busy);
        if (!is_wanted() || !start_locked())
            atomic_store(&manager_state, manager_forbidden);
    }
    lock_release(&control);
}

void manager_park(void)
{
    lock_take(&control);
    if (park_depth++ == 0) {
        if (atomic_load(&tid) != 0)
            stop_locked();
        wait_gone_locked();
        if (atomic_load(&manager_state) != manager_forbidden)
            atomic_store(&manager_state, manager_parked);
    }
    lock_release(&control);
}

void manager_resume(void)
{
    lock_take(&control);
    if (park_depth > 0 && --park_depth == 0 && atomic_load(&manager_state) == manager_parked)
        atomic_store(&manager_state, manager_absent);
    lock_release(&control);
}

void manager_forbid(void)
{
    lock_take(&control);
    atomic_store(&manager_state, manager_forbidden);
    lock_release(&control);
}

/* ---- fork ---- */

void manager_fork_prepare(void)
{
    lock_take(&control);
    lock_take(&purge_lock); /* every piece of work is done under it */
}

void manager_fork_parent(void)
{
    lock_release(&purge_lock);
    lock_release(&control);
}

void manager_fork_child(void)
{
    lock_reset(&purge_lock);
    report_forget();
    atomic_store(&tid, 0);
    last_tid = 0;
    uint32_t state = atomic_load(&manager_state);
    if (state == manager_busy || state == manager_asleep)
        atomic_store(&manager_state, manager_absent);
    lock_reset(&control);
}
