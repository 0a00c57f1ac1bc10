/* SPDX-License-Identifier: MIT
 *
 * The one lock: a futex word, 0 free, 1 held, 2 held and somebody may wait.  Never spins: with as many threads as cpus
 * the holder is often the very thread a spinner keeps off its cpu.
 */
#ifndef SUTLER_OS_LOCK_H
#define SUTLER_OS_LOCK_H

#include <stdatomic.h>

#include "base/tally.h"
#include "os/os.h"

struct lock {
    _Atomic uint32_t state;
};

#define LOCK_FREE {0}

void lock_wait_slow(struct lock *lock);

/* How often, and how long, threads of the program have waited: for a lock, or by counting it themselves. */
struct wait_counts {
    uint64_t waits, ns;
};
struct wait_counts wait_counts(void);
void wait_count(uint64_t since_ns);
/* One thread, known by its thread pointer, works in the background: the manager.  Its waits are not the program's. */
void background_thread_set(const void *thread_pointer);
bool background_thread_is_caller(void);

static inline bool lock_try(struct lock *lock)
{
    uint32_t expected = 0;
    TALLY(locks);
    return atomic_compare_exchange_strong_explicit(&lock->state, &expected, 1, memory_order_acquire,
                                                   memory_order_relaxed);
}

static inline void lock_take(struct lock *lock)
{
    if (unlikely(!lock_try(lock)))
        lock_wait_slow(lock);
}

static inline void lock_release(struct lock *lock)
{
    if (unlikely(atomic_exchange_explicit(&lock->state, 0, memory_order_release) == 2))
        os_futex_wake_one(&lock->state);
}

static inline bool lock_is_held(const struct lock *lock)
{
    return atomic_load_explicit(&lock->state, memory_order_relaxed) != 0;
}

static inline bool lock_is_contended(const struct lock *lock)
{
    return atomic_load_explicit(&lock->state, memory_order_relaxed) == 2;
}

/* In a child that has only one thread: whoever held it is not there. */
static inline void lock_reset(struct lock *lock)
{
    atomic_store_explicit(&lock->state, 0, memory_order_relaxed);
}

#endif
