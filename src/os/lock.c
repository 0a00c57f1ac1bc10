/* SPDX-License-Identifier: MIT */
#include "os/lock.h"

static _Atomic uint64_t waits, wait_ns;
static const void *_Atomic uncounted; /* thread pointer of the manager */

void wait_count(uint64_t since_ns)
{
    if (__builtin_thread_pointer() == atomic_load_explicit(&uncounted, memory_order_relaxed))
        return;
    atomic_fetch_add_explicit(&waits, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&wait_ns, os_now_ns() - since_ns, memory_order_relaxed);
}

struct wait_counts wait_counts(void)
{
    return (struct wait_counts){atomic_load(&waits), atomic_load(&wait_ns)};
}

void wait_not_counted(const void *thread_pointer)
{
    atomic_store(&uncounted, thread_pointer);
}

NOINLINE void lock_wait_slow(struct lock *lock)
{
    uint64_t since_ns = os_now_ns();
    while (atomic_exchange_explicit(&lock->state, 2, memory_order_acquire) != 0)
        os_futex_wait(&lock->state, 2);
    wait_count(since_ns);
}
