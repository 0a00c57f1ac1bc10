/* SPDX-License-Identifier: MIT
 *
 * The lock excludes, whoever waits and however it is released; the time the program waited is counted, that of the
 * manager is not.
 */
#include "os/lock.h"

#include <pthread.h>
#include <sched.h>

#include "sutler/sutler.h"
#include "unit.h"

static struct lock lock = LOCK_FREE(rank_figures); /* malloc takes others while it is held */
static _Atomic bool waiting;

static void *wait_for_it(void *is_manager)
{
    if (is_manager != NULL)
        background_thread_set(own_thread_pointer());
    atomic_store(&waiting, true);
    lock_take(&lock);
    lock_release(&lock);
    return NULL;
}

/* A thread waits while this one sleeps for `ms` with the lock in its hands, and then releases it so. */
static void make_wait(bool is_manager, unsigned ms, void (*release)(struct lock *))
{
    pthread_t thread;
    atomic_store(&waiting, false);
    lock_take(&lock);
    EXPECT_EQ(pthread_create(&thread, NULL, wait_for_it, is_manager ? &lock : NULL), 0);
    while (!atomic_load(&waiting) || !lock_is_contended(&lock))
        sched_yield();
    nanosleep(&(struct timespec){.tv_nsec = (long)ms * 1000000}, NULL);
    release(&lock);
    EXPECT_EQ(pthread_join(thread, NULL), 0);
}

static void waits_are_counted(void)
{
    struct wait_counts before = wait_counts();
    lock_take(&lock); /* free: nobody waits */
    lock_release(&lock);
    EXPECT_EQ(wait_counts().waits, before.waits);
    make_wait(false, 20, lock_release);
    EXPECT_EQ(wait_counts().waits, before.waits + 1);
    EXPECT(wait_counts().ns - before.ns >= 20000000);
    struct sutler_stats stats;
    EXPECT_EQ(sutler_stats_get(&stats, sizeof stats), 0);
    EXPECT(stats.lock_waits >= before.waits + 1 && stats.wait_us >= (before.ns + 20000000) / 1000);
}

static void those_of_the_manager_are_not(void)
{
    struct wait_counts before = wait_counts();
    make_wait(true, 5, lock_release);
    background_thread_set(NULL);
    EXPECT_EQ(wait_counts().waits, before.waits);
    EXPECT_EQ(wait_counts().ns, before.ns);
}

static void a_quick_release_wakes(void)
{
    for (int i = 0; i < 5; i++)
        make_wait(false, 5, lock_release_quickly);
    EXPECT(!lock_is_held(&lock) && !lock_is_contended(&lock));
}

/* A quick release that saw nobody, with the waiter asleep: what the barrier rules out, where there is one. */
static void release_unseen(struct lock *l)
{
    atomic_store(&l->held, 0);
}

static void who_has_no_barrier_looks_again(void)
{
    os_expect_filter();
    os_note_filter(true);
    EXPECT(!os_fence());
    make_wait(false, 20, release_unseen);
}

static void *take_and_release(void *unused)
{
    lock_take(&lock);
    lock_release_quickly(&lock);
    return unused;
}

/* Each release wakes one: he has to remember the others. */
static void all_who_wait_get_it(void)
{
    pthread_t thread[4];
    lock_take(&lock);
    for (size_t i = 0; i < ARRAY_LEN(thread); i++)
        EXPECT_EQ(pthread_create(&thread[i], NULL, take_and_release, NULL), 0);
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL); /* they sleep */
    lock_release_quickly(&lock);
    for (size_t i = 0; i < ARRAY_LEN(thread); i++)
        EXPECT_EQ(pthread_join(thread[i], NULL), 0);
}

static unsigned long shared;
static bool quickly;

static void *add(void *unused)
{
    for (int i = 0; i < 200000; i++) {
        lock_take(&lock);
        shared++;
        if (quickly && i % 4 != 0)
            lock_release_quickly(&lock);
        else
            lock_release(&lock);
    }
    return unused;
}

static void one_at_a_time(void)
{
    pthread_t thread[3];
    shared = 0;
    for (size_t i = 0; i < ARRAY_LEN(thread); i++)
        EXPECT_EQ(pthread_create(&thread[i], NULL, add, NULL), 0);
    for (size_t i = 0; i < ARRAY_LEN(thread); i++)
        EXPECT_EQ(pthread_join(thread[i], NULL), 0);
    EXPECT_EQ(shared, 600000);
    EXPECT(!lock_is_held(&lock));
}

int main(void)
{
    unit_print_mode();
    unit_watchdog(60);
    waits_are_counted();
    those_of_the_manager_are_not();
    one_at_a_time();
    lock_allow_quick_release();
    quickly = true;
    a_quick_release_wakes();
    all_who_wait_get_it();
    one_at_a_time();
    who_has_no_barrier_looks_again();
    one_at_a_time();
    return 0;
}
