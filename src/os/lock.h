/* SPDX-License-Identifier: MIT
 *
 * The one lock.  `held` is taken by a compare-and-swap.  A thread that finds it held sets `waited`, and sleeps on that
 * word until a thread that released the lock has cleared it.  With as many threads as cpus the holder is often the very
 * thread that a spinning one would keep off its cpu.  So nobody spins, but for a moment where locks are released
 * quickly.
 *
 * The lock is released by an exchange; or quickly, by a plain store and a look at `waited`.  No atomic instruction
 * keeps these two in order: a look that comes early, while the store is still on its way, misses a thread that begins
 * to wait just then.  So where locks may be released quickly, the waiter sets `waited`, has every running thread pass a
 * barrier (membarrier), and then looks at `held` once more: either it sees the lock free, or the look saw `waited`.
 * Where the system has no such barrier the waiter looks again after a moment.
 *
 * Debug builds know which thread holds a lock (lock_is_mine), and check ranks: a thread that takes a lock holds none of
 * the same or a higher rank.  So no two threads can wait for each other. lock_try never waits and may take any lock.
 */
#ifndef SUTLER_OS_LOCK_H
#define SUTLER_OS_LOCK_H

#include <stdatomic.h>

#include "base/tally.h"
#include "os/os.h"

/* All locks of the library, outermost first.  Those that are only tried come before all others: nobody waits for them,
 * and a signal handler that finds its own thread with one may take any other. */
enum lock_rank {
    rank_tried,        /* heap/regain.c, hardened/kept.c, hardened/quarantine.c */
    rank_figures,      /* entry/mallctl.c: the figures of an epoch */
    rank_symbols,      /* entry/deep_binding.c: the page of libc's symbols that is being written */
    rank_start,        /* core/init.c: the initialisation */
    rank_vforks,       /* core/fast_paths.c: how many children of vfork live */
    rank_pass,         /* heap/pass.h: one pass at a time */
    rank_binding,      /* heap/heap.h: which heap a cid has */
    rank_heap,         /* heap/heap.h: a local heap; the lock of a second one is only tried */
    rank_global_heap,  /* heap/heap.h: one of the eight */
    rank_span,         /* heap/arena.h: free spans */
    rank_mapping = rank_span, /* heap/mapping_table.h: mappings, and the cache of freed ones; never both */
};

struct lock {
    _Atomic uint32_t held, waited;
#ifdef SUTLER_DEBUG
    enum lock_rank rank;
#endif
};

#ifdef SUTLER_DEBUG
#define LOCK_FREE(rank) {0, 0, rank}
#else
#define LOCK_FREE(rank) {0, 0}
#endif

/* From here on locks may be released quickly.  Called before there is one that is. */
void lock_allow_quick_release(void);

void lock_wait_slow(struct lock *lock);
void lock_wake_slow(struct lock *lock);

/* How often, and how long, threads of the program have waited: for a lock, or by counting it themselves. */
struct wait_counts {
    uint64_t waits, ns;
};
struct wait_counts wait_counts(void);
void wait_count(uint64_t since_ns);
/* One thread, known by its thread pointer, works in the background: the manager.  Its waits are not the program's. */
void background_thread_set(const void *thread_pointer);
bool background_thread_is_caller(void);

/* What `held` says while the calling thread has the lock; in debug builds, which thread that is. */
static inline uint32_t lock_mark(void)
{
#ifdef SUTLER_DEBUG
    return (uint32_t)((uintptr_t)own_thread_pointer() >> 4) | 1;
#else
    return 1;
#endif
}

static inline bool lock_is_held(const struct lock *lock)
{
    return atomic_load_explicit(&lock->held, memory_order_relaxed) != 0;
}

/* True if the caller holds it.  Release builds do not know who does, and say whether anybody does. */
static inline bool lock_is_mine(const struct lock *lock)
{
    return atomic_load_explicit(&lock->held, memory_order_relaxed) == lock_mark();
}

#ifdef SUTLER_DEBUG
/* How many locks of each rank the thread holds, in two bits each. */
#define RANK_BITS 2u
#define RANK_UNIT(lock) (1u << ((lock)->rank * RANK_BITS))
extern THREAD_SHARED uint32_t lock_ranks_held;
_Static_assert((rank_mapping + 1) * RANK_BITS <= 32, "ranks fit");
#define lock_note_taken(lock)    ((void)(lock_ranks_held += RANK_UNIT(lock)))
#define lock_note_released(lock) ((void)(lock_ranks_held -= RANK_UNIT(lock)))
/* For a thread that begins where the thread-local variables of another one were, which may have held locks: the manager
 * in the child of a fork. */
#define lock_forget_held() ((void)(lock_ranks_held = 0))
#else
#define lock_note_taken(lock)    ((void)(lock))
#define lock_note_released(lock) ((void)(lock))
#define lock_forget_held()       ((void)0)
#endif

static inline bool lock_try(struct lock *lock)
{
    uint32_t expected = 0;
    TALLY(locks);
    bool taken = atomic_compare_exchange_strong_explicit(&lock->held, &expected, lock_mark(), memory_order_acquire,
                                                         memory_order_relaxed);
    if (taken)
        lock_note_taken(lock);
    return taken;
}

static inline void lock_take(struct lock *lock)
{
#ifdef SUTLER_DEBUG
    ASSERT(lock->rank != rank_tried && lock_ranks_held < RANK_UNIT(lock)); /* holds none of this rank or a higher one */
#endif
    if (unlikely(!lock_try(lock)))
        lock_wait_slow(lock);
}

static inline void lock_release(struct lock *lock)
{
    ASSERT(lock_is_mine(lock));
    lock_note_released(lock);
    atomic_exchange(&lock->held, 0);
    if (unlikely(atomic_load(&lock->waited) != 0))
        lock_wake_slow(lock);
}

/* The same without an atomic instruction, for what is done at every call. */
static inline void lock_release_quickly(struct lock *lock)
{
    ASSERT(lock_is_mine(lock));
    lock_note_released(lock);
    atomic_store_explicit(&lock->held, 0, memory_order_release);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (unlikely(atomic_load_explicit(&lock->waited, memory_order_relaxed) != 0))
        lock_wake_slow(lock);
}

static inline bool lock_is_contended(const struct lock *lock)
{
    return lock_is_held(lock) && atomic_load_explicit(&lock->waited, memory_order_relaxed) != 0;
}

/* In a child that has only one thread: whoever held it is not there. */
static inline void lock_reset(struct lock *lock)
{
    atomic_store_explicit(&lock->held, 0, memory_order_relaxed);
    atomic_store_explicit(&lock->waited, 0, memory_order_relaxed);
}

#endif
