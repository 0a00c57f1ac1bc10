/* SPDX-License-Identifier: MIT */
#include <linux/futex.h>
#include <stdatomic.h>
#include <time.h>

#include "os/os.h"
#include "os/syscall.h"

#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif

static struct timespec timespec_of(uint64_t ns)
{
    return (struct timespec){(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
}

void os_futex_wait(_Atomic uint32_t *word, uint32_t expected)
{
    sys_call(SYS_futex, (long)word, FUTEX_WAIT_PRIVATE, expected, 0, 0, 0);
}

#define WAKE(name, operation, count)                                                                                   \
    void name(_Atomic uint32_t *word)                                                                                  \
    {                                                                                                                  \
        sys_call(SYS_futex, (long)word, operation, count, 0, 0, 0);                                                    \
    }

WAKE(os_futex_wake_one, FUTEX_WAKE_PRIVATE, 1)
WAKE(os_futex_wake_all, FUTEX_WAKE_PRIVATE, INT32_MAX)
WAKE(os_futex_wake_all_shared, FUTEX_WAKE, INT32_MAX)

void os_futex_wait_for(_Atomic uint32_t *word, uint32_t expected, uint64_t timeout_ns)
{
    struct timespec timeout = timespec_of(timeout_ns);
    sys_call(SYS_futex, (long)word, FUTEX_WAIT_PRIVATE, expected, (long)&timeout, 0, 0);
}

void os_futex_wait_shared(_Atomic uint32_t *word, uint32_t expected, uint64_t timeout_ns)
{
    struct timespec timeout = timespec_of(timeout_ns);
    sys_call(SYS_futex, (long)word, FUTEX_WAIT, expected, (long)&timeout, 0, 0);
}

void os_sleep(uint64_t ns)
{
    static _Atomic uint32_t never;
    os_futex_wait_for(&never, 0, ns);
}

bool os_futex_wait_either(_Atomic uint32_t *word, uint32_t expected, _Atomic uint32_t *cleared, uint32_t until,
                          uint64_t end_ns)
{
    const uint32_t size_32 = 2, private = FUTEX_PRIVATE_FLAG; /* the kernel wakes the other one as a shared one */
    struct {
        uint64_t value, address;
        uint32_t flags, reserved;
    } waiter[] = {{expected, (uintptr_t)word, size_32 | private, 0}, {until, (uintptr_t)cleared, size_32, 0}};
    struct timespec end = timespec_of(end_ns);
    long result = sys_call(SYS_futex_waitv, (long)waiter, 2, 0, (long)&end, CLOCK_MONOTONIC, 0);
    return !sys_failed(result) || result == -EAGAIN || result == -EINTR || result == -ETIMEDOUT;
}
