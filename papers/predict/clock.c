/* SPDX-License-Identifier: MIT
 *
 * Why: time is counted in ticks, which cost a few nanoseconds to read; the rate is what it was since the start.
 */
#include "caller.h"

#include <time.h>

static uint64_t first_ticks, first_ns;

void clock_begin(void)
{
    first_ticks = ticks_now();
    first_ns = now_ns();
}

uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* The clock's rate is what it was since the start. */
uint64_t ticks_of_ns(uint64_t ns)
{
    uint64_t ticks = ticks_now() - first_ticks, passed_ns = now_ns() - first_ns;
    return (uint64_t)((unsigned __int128)ns * ticks / (passed_ns != 0 ? passed_ns : 1));
}

uint64_t ns_of_ticks(uint64_t ticks)
{
    uint64_t passed = ticks_now() - first_ticks, ns = now_ns() - first_ns;
    return (uint64_t)((unsigned __int128)ticks * ns / (passed != 0 ? passed : 1));
}
