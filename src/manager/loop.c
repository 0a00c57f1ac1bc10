/* SPDX-License-Identifier: MIT
 *
 * The manager's thread: runs its jobs when they are due and sleeps in between.
 */
#include "heap/demand.h"
#include "heap/large.h"
#include "heap/pass.h"
#include "manager/wake.h"
#include "manager/jobs.h"
#include "manager/loop.h"
#include "manager/spare_cpu.h"
#include "manager/report.h"
#include "manager/state.h"
#include "os/guest.h"
#include "os/os.h"

/* How often, while awake, it looks whether it is in the program's way; and how long it stays away then. */
#define PLACE_LOOK_NS 500000000ull
#define AWAY_NS 1000000000ull

static void sleep_until(uint64_t when_ns)
{
    uint32_t heard = wake_count();
    if (atomic_load(&manager_stop_requested) || atomic_load(&heap_demand) != demand_none)
        return;
    if (when_ns != UINT64_MAX)
        return wake_wait_until(heard, when_ns);
    manager_change(manager_busy, manager_asleep);
    wake_wait(heard);
    manager_change(manager_asleep, manager_busy);
}

/* False if no processor is to spare.  What the program has become meanwhile the manager becomes, too. */
static bool may_stay(void)
{
    os_guest_take_no_precedence();
    return spare_cpu_is_granted(manager_life.starter.tid);
}

static void work(void)
{
    uint64_t next = UINT64_MAX, look_ns = 0;
    while (!atomic_load(&manager_stop_requested)) {
        uint64_t now = os_now_ns();
        if (now >= look_ns) {
            look_ns = now + PLACE_LOOK_NS;
            if (!may_stay())
                return manager_stay_away(AWAY_NS);
        }
        if (next == UINT64_MAX)
            jobs_rouse(job_on_clock, now);
        if (atomic_exchange(&heap_demand, demand_none) != demand_none)
            jobs_rouse(job_on_demand, now);
        next = jobs_run(now);
        manager_note_cpu_us(os_thread_cpu_us());
        sleep_until(next);
    }
}

static void serve(void)
{
    provision_start();
    pass_begin(); /* no fork in the middle: the child would have the page */
    report_open();
    pass_end();
    work();
    atomic_store(&memory_is_short, false);
    report_close();
}

void manager_run(void)
{
    os_guest_renounce();
    /* Often left on the cpu it was made on, it would read its files there while the program waits. */
    os_leave_cpu(manager_life.starter.cpu);
    /* Sharing the program's file descriptors would be seen: numbers taken that it expects, files kept open. */
    if (!os_thread_settle("sutler-manager"))
        manager_forbid();
    else if (!may_stay())
        manager_stay_away(AWAY_NS);
    else
        serve();
    atomic_store(&unmap_is_async, false);
    atomic_store(&manager_is_missing, true);
    unmap_run(0); /* what was left for it since it was made; no more is */
}
