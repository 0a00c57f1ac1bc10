/* SPDX-License-Identifier: MIT */
#include "os/lock.h"

_Atomic uint64_t lock_waits;

NOINLINE void lock_wait_slow(struct lock *lock)
{
    atomic_fetch_add_explicit(&lock_waits, 1, memory_order_relaxed);
    while (atomic_exchange_explicit(&lock->state, 2, memory_order_acquire) != 0)
        os_futex_wait(&lock->state, 2);
}
