/* SPDX-License-Identifier: MIT */
#include "heap/pass.h"

#define MOMENT_NS 100000ull

struct lock pass_lock = LOCK_FREE(rank_pass);

static _Atomic uint32_t pauses; /* forks under way; the manager sleeps on it */

/* Whether the manager is in a batch, and whether a fork sleeps until that ends. */
enum { at_rest, at_work, at_work_awaited };
static _Atomic uint32_t work = at_rest;

static void rest(void)
{
    if (atomic_exchange(&work, at_rest) == at_work_awaited)
        os_futex_wake_all(&work);
}

/* Stores `work` and then looks at `pauses`; pass_pause stores `pauses` and then looks at `work`. */
static bool go_to_work(void)
{
    atomic_store(&work, at_work);
    if (atomic_load(&pauses) == 0)
        return true;
    rest();
    return false;
}

/* A thread of the program that has the lock is not to yield to the manager batch by batch: it is doing the manager's
 * work, and a malloc_trim of many spans took twice its time.  So the manager looks from time to time. */
static void take_in_background(void)
{
    while (!lock_try(&pass_lock))
        os_sleep(MOMENT_NS);
}

static void begin_in_background(void)
{
    for (;;) {
        take_in_background();
        if (go_to_work())
            return;
        lock_release(&pass_lock); /* a thread of the program must not wait for the fork to end */
        uint32_t seen = atomic_load(&pauses);
        if (seen != 0)
            os_futex_wait(&pauses, seen);
    }
}

void pass_begin(void)
{
    if (background_thread_is_caller())
        begin_in_background();
    else
        lock_take(&pass_lock);
}

bool pass_try_begin(void)
{
    ASSERT(!background_thread_is_caller());
    return lock_try(&pass_lock);
}

void pass_end(void)
{
    lock_release(&pass_lock);
    if (background_thread_is_caller())
        rest();
}

bool pass_is_wanted(void)
{
    return lock_is_contended(&pass_lock) ||
           (background_thread_is_caller() && atomic_load_explicit(&pauses, memory_order_relaxed) != 0);
}

void pass_yield(void)
{
    if (!pass_is_wanted())
        return;
    pass_end();
    os_sleep(MOMENT_NS); /* else we would take the lock again before they wake */
    pass_begin();
}

bool pass_pause(uint64_t most_ns)
{
    atomic_fetch_add(&pauses, 1);
    if (likely(atomic_load(&work) == at_rest))
        return true;
    uint64_t since_ns = os_now_ns(), past_ns = 0;
    while (atomic_load(&work) != at_rest && past_ns < most_ns) {
        uint32_t seen = at_work;
        if (atomic_compare_exchange_strong(&work, &seen, at_work_awaited) || seen == at_work_awaited)
            os_futex_wait_for(&work, at_work_awaited, most_ns - past_ns);
        past_ns = os_now_ns() - since_ns;
    }
    wait_count(since_ns);
    return atomic_load(&work) == at_rest;
}

void pass_resume(void)
{
    if (atomic_fetch_sub(&pauses, 1) == 1)
        os_futex_wake_all(&pauses);
}

void pass_forget(void)
{
    lock_reset(&pass_lock);
    atomic_store(&pauses, 0);
    atomic_store(&work, at_rest);
}
