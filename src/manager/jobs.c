/* SPDX-License-Identifier: MIT */
#include "manager/jobs.h"

#include "base/bits.h"
#include "manager/wake.h"

#define US 1000ull
#define MS (1000 * US)

static const struct job job[] = {
#ifdef SUTLER_HARDENED
    {"look", job_on_demand, 0, UINT64_MAX, look_help, NULL}, /* first: threads are stopped for it; no pass */
#endif
    {"headroom", job_on_demand, 0, UINT64_MAX, headroom_run, NULL},
    {"provision", job_on_demand, 1 * MS, 20 * MS, provision_run, NULL},
    {"follow", job_on_demand, 250 * US, 2 * MS, follow_run, NULL},
    {"unmap", job_on_demand, 0, 2 * MS, unmap_run, NULL},
    {"watch", job_on_clock, 400 * MS, UINT64_MAX, watch_run, NULL},
    {"pressure", job_on_clock, 500 * MS, UINT64_MAX, pressure_run, NULL},
    {"reclaim", job_on_clock, 400 * MS, UINT64_MAX, reclaim_run, NULL},
    {"collapse", job_beside, 20 * MS, UINT64_MAX, collapse_run, collapse_wait_ns},
    {"report", job_on_clock, 1000 * MS, UINT64_MAX, report_run, NULL},
#ifdef SUTLER_HARDENED
    {"sweep", job_on_demand, 0, 2 * MS, sweep_run, NULL},
    {"audit", job_on_clock, 100 * MS, 1 * MS, audit_run, NULL},
#endif
};

#define NOT_DUE UINT64_MAX
static uint64_t due_ns[ARRAY_LEN(job)] = {[0 ... ARRAY_LEN(job) - 1] = NOT_DUE};

uint64_t jobs_run(uint64_t now_ns)
{
    bool heap_changes = false;
    for (size_t i = 0; i < ARRAY_LEN(job); i++)
        if (due_ns[i] <= now_ns) {
            bool more = job[i].run(job[i].budget_ns);
            uint64_t wait_ns = more && job[i].wait_ns != NULL ? job[i].wait_ns() : 0;
            due_ns[i] = more ? now_ns + max_size(job[i].period_ns, wait_ns) : NOT_DUE;
            heap_changes |= more && job[i].trigger == job_on_clock;
        }
    /* Jobs that had found nothing are due again: while any is on the clock, slow paths do not wake the manager. */
    if (heap_changes)
        jobs_rouse(job_on_clock, now_ns);
    uint64_t next = NOT_DUE;
    const bool ends = wake_leader_has_ended(); /* whoever waits now may be what keeps the process */
    for (size_t i = 0; i < ARRAY_LEN(job); i++)
        if (due_ns[i] < next && !(ends && job[i].trigger == job_beside))
            next = due_ns[i];
    return next;
}

bool jobs_clock_has_stopped(void)
{
    for (size_t i = 0; i < ARRAY_LEN(job); i++)
        if (job[i].trigger == job_on_clock && due_ns[i] != NOT_DUE)
            return false;
    return true;
}

static bool is_roused_by(const struct job *j, enum job_trigger trigger)
{
    return j->trigger == trigger || (j->trigger == job_beside && trigger == job_on_clock);
}

void jobs_rouse(enum job_trigger trigger, uint64_t now_ns)
{
    for (size_t i = 0; i < ARRAY_LEN(job); i++)
        if (is_roused_by(&job[i], trigger) && due_ns[i] == NOT_DUE)
            due_ns[i] = now_ns + (trigger == job_on_clock ? job[i].period_ns : 0);
}
