/* SPDX-License-Identifier: MIT
 *
 * The manager's thread: runs its jobs when they are due and sleeps in between.
 */
#include "heap/allowance.h"
#include "heap/demand.h"
#include "heap/large.h"
#include "heap/pass.h"
#include "manager/wake.h"
#include "manager/jobs.h"
#include "manager/spare_cpu.h"
#include "manager/report.h"
#include "manager/state.h"
#include "os/guest.h"
#include "os/hooks.h"
#include "os/os.h"

/* How often, while awake, it asks whether a cpu is spare; and how long it stays away if none is. */
#define SPARE_LOOK_NS 500000000ull
#define AWAY_NS 1000000000ull

/* Not after a wake that has not been heard. */
static void sleep_until(uint64_t when_ns, uint32_t heard)
{
    const bool clock_has_stopped = jobs_clock_has_stopped();
    if (atomic_load(&manager_stop_requested) || atomic_load(&heap_demand) != demand_none)
        return;
    if (clock_has_stopped) /* slow paths wake who is asleep: the heap changes */
        manager_change(manager_busy, manager_asleep);
    if (when_ns != UINT64_MAX)
        wake_wait_until(heard, when_ns);
    else
        wake_wait(heard);
    if (clock_has_stopped)
        manager_change(manager_asleep, manager_busy);
}

/* False if no cpu is spare.  Takes on what has changed of the program's priority meanwhile. */
static bool may_stay(void)
{
    os_guest_take_no_precedence();
    return spare_cpu_is_granted(manager_life.starter.tid);
}

static void work(void)
{
    uint64_t look_ns = 0;
    uint32_t heard = wake_count() - 1; /* it was made because there is something to do */
    while (!atomic_load(&manager_stop_requested)) {
        if (os_is_hooked()) /* it may not do what it is here for */
            return manager_stay_away(AWAY_NS);
        uint64_t now = os_now_ns();
        if (now >= look_ns) {
            look_ns = now + SPARE_LOOK_NS;
            if (!may_stay())
                return manager_stay_away(AWAY_NS);
        }
        const uint32_t count = wake_count();
        const bool is_demanded = atomic_exchange(&heap_demand, demand_none) != demand_none;
        if ((is_demanded || count != heard) && jobs_clock_has_stopped())
            jobs_rouse(job_on_clock, now); /* who demands something may have been heard before the wake */
        heard = count;
        if (is_demanded)
            jobs_rouse(job_on_demand, now);
        const uint64_t next = jobs_run(now);
        atomic_store_explicit(&manager_life.cpu_us, os_thread_cpu_us(), memory_order_relaxed);
        sleep_until(next, heard);
    }
}

static void serve(void)
{
    provision_start();
    pass_begin(); /* a child of a fork in the middle of this would have the page */
    report_open();
    pass_end();
    work();
    atomic_store(&memory_is_short, false);
    report_close();
}

void manager_run(void)
{
    os_guest_renounce();
    /* The system often leaves it on the cpu where it was made, where it would read files while the program waits. */
    os_leave_cpu(manager_life.starter.cpu);
    /* The manager needs a table of file descriptors of its own: in a shared one it would take numbers that the program
     * expects. */
    if (!os_thread_settle("sutler-manager"))
        manager_forbid();
    else if (!may_stay())
        manager_stay_away(AWAY_NS);
    else
        serve();
    atomic_store(&unmap_is_async, false);
    atomic_store(&manager_is_missing, true);
    allowance_reset();
    unmap_run(UINT64_MAX); /* nothing more is deferred from here on */
}
