/* SPDX-License-Identifier: MIT */
#include "os/lock.h"

static _Atomic uint64_t waits, wait_ns;
static const void *_Atomic background;

static bool quick_releases;

#ifdef SUTLER_DEBUG
THREAD_SHARED uint32_t lock_ranks_held;
#endif

void background_thread_set(const void *thread_pointer)
{
    atomic_store(&background, thread_pointer);
}

bool background_thread_is_caller(void)
{
    return own_thread_pointer() == atomic_load_explicit(&background, memory_order_relaxed);
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

void lock_allow_quick_release(void)
{
    os_fence_register();
    quick_releases = true;
}

/* A lock that is released quickly is held for nanoseconds, if its holder runs: to sleep would take a thousand times
 * longer. */
static bool take_soon(struct lock *lock)
{
    const int looks = 16;
    for (int i = 0; quick_releases && i < looks; i++) {
        cpu_relax();
        if (!lock_is_held(lock) && lock_try(lock))
            return true;
    }
    return false;
}

/* `waited` is set before each attempt, the one that takes the lock included: others may be asleep, and whoever releases
 * the lock clears it for one of them. */
static bool take_or_sleep(struct lock *lock)
{
    const uint64_t moment_ns = 1000000;
    atomic_store(&lock->waited, 1);
    bool is_seen = !quick_releases || os_fence();
    uint32_t free = 0;
    if (atomic_compare_exchange_strong(&lock->held, &free, lock_mark())) {
        lock_note_taken(lock);
        return true;
    }
    if (is_seen)
        os_futex_wait(&lock->waited, 1);
    else
        os_futex_wait_for(&lock->waited, 1, moment_ns);
    return false;
}

NOINLINE void lock_wait_slow(struct lock *lock)
{
    if (take_soon(lock))
        return;
    uint64_t since_ns = os_now_ns();
    while (!take_or_sleep(lock))
        continue;
    wait_count(since_ns);
}

NOINLINE void lock_wake_slow(struct lock *lock)
{
    atomic_store(&lock->waited, 0);
    os_futex_wake_one(&lock->waited);
}
