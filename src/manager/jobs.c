/* SPDX-License-Identifier: MIT */
#include "manager/jobs.h"

#define MS 1000000ull

static const struct job job[] = {
    {"reclaim", "on a clock while the heap changes", 400 * MS, reclaim_run},
};

static uint64_t due_ns[ARRAY_LEN(job)];

uint64_t jobs_run(uint64_t now_ns)
{
    uint64_t next = UINT64_MAX;
    for (size_t i = 0; i < ARRAY_LEN(job); i++) {
        if (due_ns[i] <= now_ns)
            due_ns[i] = job[i].run() ? now_ns + job[i].period_ns : UINT64_MAX;
        if (due_ns[i] < next)
            next = due_ns[i];
    }
    return next;
}

void jobs_rouse(uint64_t now_ns)
{
    for (size_t i = 0; i < ARRAY_LEN(job); i++)
        if (due_ns[i] == UINT64_MAX || due_ns[i] == 0)
            due_ns[i] = now_ns + job[i].period_ns;
}
