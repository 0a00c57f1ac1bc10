/* SPDX-License-Identifier: MIT */
#include "manager/jobs.h"

#define MS 1000000ull

static const struct job job[] = {
    {"provision", job_on_demand, 1 * MS, 20 * MS, provision_run},
    {"pressure", job_on_clock, 500 * MS, UINT64_MAX, pressure_run},
    {"reclaim", job_on_clock, 400 * MS, UINT64_MAX, reclaim_run},
    {"report", job_on_clock, 1000 * MS, UINT64_MAX, report_run},
};

#define NOT_DUE UINT64_MAX
static uint64_t due_ns[ARRAY_LEN(job)] = {[0 ... ARRAY_LEN(job) - 1] = NOT_DUE};
static bool found_more[ARRAY_LEN(job)]; /* by its last run; or it has not run since it was roused */

static void run(size_t i, uint64_t now_ns)
{
    found_more[i] = job[i].run(job[i].budget_ns);
    due_ns[i] = found_more[i] || job[i].trigger == job_on_clock ? now_ns + job[i].period_ns : NOT_DUE;
}

/* The clock goes on for all while one of its jobs finds something to do. */
static void stop_idle_clock(void)
{
    for (size_t i = 0; i < ARRAY_LEN(job); i++)
        if (job[i].trigger == job_on_clock && found_more[i])
            return;
    for (size_t i = 0; i < ARRAY_LEN(job); i++)
        if (job[i].trigger == job_on_clock)
            due_ns[i] = NOT_DUE;
}

uint64_t jobs_run(uint64_t now_ns)
{
    uint64_t next = NOT_DUE;
    for (size_t i = 0; i < ARRAY_LEN(job); i++)
        if (due_ns[i] <= now_ns)
            run(i, now_ns);
    stop_idle_clock();
    for (size_t i = 0; i < ARRAY_LEN(job); i++)
        if (due_ns[i] < next)
            next = due_ns[i];
    return next;
}

void jobs_rouse(enum job_trigger trigger, uint64_t now_ns)
{
    for (size_t i = 0; i < ARRAY_LEN(job); i++)
        if (job[i].trigger == trigger && due_ns[i] == NOT_DUE) {
            due_ns[i] = now_ns + (trigger == job_on_clock ? job[i].period_ns : 0);
            found_more[i] = true;
        }
}
