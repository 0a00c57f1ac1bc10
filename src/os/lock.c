/* SPDX-License-Identifier: MIT */
#include "os/lock.h"

NOINLINE void lock_wait_slow(struct lock *lock)
{
    while (atomic_exchange_explicit(&lock->state, 2, memory_order_acquire) != 0)
        os_futex_wait(&lock->state, 2);
}
