/* SPDX-License-Identifier: MIT */
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <sched.h>
#include <time.h>

#include "base/bits.h"
#include "os/os.h"
#include "os/syscall.h"

void os_futex_wait(_Atomic uint32_t *word, uint32_t expected)
{
    sys_call(SYS_futex, (long)word, FUTEX_WAIT_PRIVATE, expected, 0, 0, 0);
}

void os_futex_wake_one(_Atomic uint32_t *word)
{
    sys_call(SYS_futex, (long)word, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0);
}

unsigned os_cpu_limit(void)
{
    unsigned long mask[1024]; /* 65,536 cpus */
    long bytes = sys_call(SYS_sched_getaffinity, 0, sizeof mask, (long)mask, 0, 0, 0);
    return sys_failed(bytes) || bytes == 0 ? 64 : (unsigned)align_up((size_t)bytes * 8, 64);
}

unsigned os_current_cpu(void)
{
    int cpu = sched_getcpu(); /* glibc reads it from rseq or the vdso */
    return cpu < 0 ? 0 : (unsigned)cpu;
}

bool os_rseq_fence_register(void)
{
    return !sys_failed(
        sys_call(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_RSEQ, 0, 0, 0, 0, 0));
}

bool os_rseq_fence(void)
{
    return !sys_failed(sys_call(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ, 0, 0, 0, 0, 0));
}

uint64_t os_now_ns(void)
{
    struct timespec now = {0};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}

uint32_t os_random(void)
{
    uint32_t value;
    const long nonblocking = 1; /* GRND_NONBLOCK */
    if (sys_call(SYS_getrandom, (long)&value, sizeof value, nonblocking, 0, 0, 0) == sizeof value)
        return value;
    uint64_t seed = os_now_ns() ^ (uintptr_t)&value;
    return (uint32_t)((seed * 0x9e3779b97f4a7c15ull) >> 32);
}
