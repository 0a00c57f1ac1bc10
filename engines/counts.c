/* SPDX-License-Identifier: MIT
 *
 * Why: the papers explain their tables by counting (MMT figure 2 and table I, the thesis's misses), and on a busy
 * machine counts say more than times.  Counted is what is rare and dear anyway: a word to the other thread, a sleep, a
 * wake, a lock found held.  Nothing on the path of a call that needs none of these is counted.
 *
 * Read from outside: a program that knows of the function (bench/support/result.c) asks for the figures at its end.
 */
#include "engine.h"

#include <time.h>

struct engine_counts engine_counts;

/* The manager's own cpu time, which the papers do not tell of: it is not free. */
static uint64_t manager_cpu_us(void)
{
    struct timespec used;
    if (LOAD(&manager_state) != MANAGER_RUNNING || clock_gettime(manager_clock, &used) != 0)
        return 0;
    return (uint64_t)used.tv_sec * 1000000 + (uint64_t)used.tv_nsec / 1000;
}

EXPORT void sutler_engine_counts(void (*each)(const char *name, uint64_t value));
EXPORT void sutler_engine_counts(void (*each)(const char *name, uint64_t value))
{
    struct engine_counts counts = engine_counts;
    if (engine.counts != NULL)
        engine.counts(&counts);
    each("messages", counts.messages);
    each("handed", counts.handed);
    each("sleeps", counts.sleeps);
    each("wakes", counts.wakes);
    each("lock_waits", counts.lock_waits);
    each("manager_us", manager_cpu_us());
}
