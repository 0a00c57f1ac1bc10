/* SPDX-License-Identifier: MIT
 *
 * The manager's duties, one row each.
 */
#ifndef SUTLER_MANAGER_JOBS_H
#define SUTLER_MANAGER_JOBS_H

#include "base/compiler.h"

struct job {
    const char *name;
    const char *trigger; /* in words, for the report */
    uint64_t period_ns;  /* between two runs while the heap changes */
    /* One pass, in pieces that each hold the pass lock for at most some milliseconds.  Returns true if another pass a
     * period later may find something to do. */
    bool (*run)(void);
};

/* Runs what is due at `now_ns`; returns when to look again, or UINT64_MAX if nothing is left to do. */
uint64_t jobs_run(uint64_t now_ns);

/* Makes every job due one period from now: the heap has changed. */
void jobs_rouse(uint64_t now_ns);

bool reclaim_run(void);

#endif
