/* SPDX-License-Identifier: MIT
 *
 * Why: everything here is timed by one clock, so that figures of different programs can be put side by side.
 * CLOCK_MONOTONIC through the vDSO costs about 25 ns a reading: loops are timed from outside, and only programs that
 * measure the latency of single operations read it inside.
 */
#ifndef BENCH_CLOCK_H
#define BENCH_CLOCK_H

#include <errno.h>
#include <stdint.h>
#include <time.h>

static inline uint64_t clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Sleeps without ever calling the allocator; signals do not shorten it. */
static inline void clock_sleep_ms(uint64_t delay_ms)
{
    struct timespec delay = {(time_t)(delay_ms / 1000), (long)(delay_ms % 1000) * 1000000};
    while (clock_nanosleep(CLOCK_MONOTONIC, 0, &delay, &delay) == EINTR)
        ;
}

/* For the body of a loop that waits on another cpu. */
static inline void cpu_relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

#endif
