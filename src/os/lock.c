/* SPDX-License-Identifier: MIT */
#include "os/lock.h"

static _Atomic uint64_t waits, wait_ns;
static const void *_Atomic background;

void background_thread_set(const void *thread_pointer)
{
    atomic_store(&background, thread_pointer);
}

bool background_thread_is_caller(void)
{
    return __builtin_thread_pointer() == atomic_load_explicit(&background, memory_order_relaxed);
}

void wait_count(uint64_t since_ns)
{
    if (background_thread_is_caller())
        return;
    atomic_fetch_add_explicit(&waits, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&wait_ns, os_now_ns() - since_ns, memory_order_relaxed);
}

struct wait_counts wait_counts(void)
{
    return (struct wait_counts){atomic_load(&waits), atomic_load(&wait_ns)};
}

NOINLINE void lock_wait_slow(struct lock *lock)
{
    uint64_t since_ns = os_now_ns();
    while (atomic_exchange_explicit(&lock->state, 2, memory_order_acquire) != 0)
        os_futex_wait(&lock->state, 2);
    wait_count(since_ns);
}
