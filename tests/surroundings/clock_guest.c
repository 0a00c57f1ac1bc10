/* SPDX-License-Identifier: MIT
 *
 * A library that interposes what libc says of time and place, as libfaketime does, and needs a thread of libc's for it:
 * the variable below is looked up in the calling thread's vector of thread-local storage.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static __thread volatile int calls;

int clock_gettime(clockid_t clock, struct timespec *now)
{
    calls++;
    return (int)syscall(SYS_clock_gettime, clock, now);
}

int sched_getcpu(void)
{
    unsigned cpu = 0;
    calls++;
    syscall(SYS_getcpu, &cpu, NULL, NULL);
    return (int)cpu;
}
