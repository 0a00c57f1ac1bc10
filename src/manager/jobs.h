/* SPDX-License-Identifier: MIT
 *
 * The manager's duties, one row each.
 */
#ifndef SUTLER_MANAGER_JOBS_H
#define SUTLER_MANAGER_JOBS_H

#include "base/compiler.h"

enum job_trigger {
    job_on_clock,  /* a period after the last run, while the heap changes */
    job_beside,    /* the same, but that it has something to do does not say that the heap changes */
    job_on_demand, /* when a slow path of the program says so */
};

struct job {
    const char *name;
    enum job_trigger trigger;
    uint64_t period_ns; /* until the next run, if this one left something to do */
    uint64_t budget_ns; /* for a run that can be cut short */
    /* Holds the pass lock for at most some milliseconds at a time.  Returns true if another run a period later may find
     * something to do. */
    bool (*run)(uint64_t budget_ns);
    uint64_t (*wait_ns)(void); /* until the next run, if that is longer than the period; NULL: it is not */
};

/* Runs what is due at `now_ns`; returns when to look again, or UINT64_MAX if nothing is left to do. */
uint64_t jobs_run(uint64_t now_ns);

/* True if no job on the clock is due: the heap has stopped changing.  Others may be due. */
bool jobs_clock_has_stopped(void);

/* Makes jobs due that are not: on the clock a period from now, on demand now. */
void jobs_rouse(enum job_trigger trigger, uint64_t now_ns);

/* Called by each new manager thread before it runs jobs. */
void provision_start(void);

bool headroom_run(uint64_t budget_ns);
bool reclaim_run(uint64_t budget_ns);
bool provision_run(uint64_t budget_ns);
bool follow_run(uint64_t budget_ns);
bool watch_run(uint64_t budget_ns);
bool collapse_run(uint64_t budget_ns);
uint64_t collapse_wait_ns(void);
bool unmap_run(uint64_t budget_ns);
bool pressure_run(uint64_t budget_ns);
bool report_run(uint64_t budget_ns);
#ifdef SUTLER_HARDENED
bool look_help(uint64_t budget_ns); /* hardened/look.c */
bool sweep_run(uint64_t budget_ns); /* hardened/sweep.c */
bool audit_run(uint64_t budget_ns); /* hardened/audit.c */
#endif

#endif
