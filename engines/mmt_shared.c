/* SPDX-License-Identifier: MIT
 *
 * Why: MMT's designs 3, 4 and 5 (section V-B) ask whether the program's thread should allocate by itself and leave only
 * deallocation to the server.  Both then work in the library at the same time, whose free lists take a lock (III-C), and the
 * designs show what that costs: 3 with Pthread primitives, 4 with "minimalist" ones (III-E1: a spinning compare-and-swap lock
 * and semaphore), 5 with 4's and deallocation in bulk.
 *
 * Designs 3 and 4 pass single addresses through one queue of 200 entries, a lock for the queue and two semaphores: items for
 * the server, room for the clients.  The library below has locks of its own today; the paper's lock around it is part of the
 * design and is taken all the same.
 *
 * The paper's minimalist primitives spin without bound.  These spin briefly, then yield, then sleep for 50 us at a time
 * (engine_relax); the server of design 4 sleeps as all managers do.
 */
#include "mmt.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <time.h>

static pthread_mutex_t library_mutex = PTHREAD_MUTEX_INITIALIZER, queue_mutex = PTHREAD_MUTEX_INITIALIZER;
static sem_t items_pthread, room_pthread;
static uint32_t library_spin, queue_spin;
static uint32_t items, room;

static struct {
    void *entries[MMT_QUEUE];
    uint32_t first, count;
} queue;

/* ---------------------------------------------------------------------------------------- minimalist primitives (III-E1) */

static void spin_lock(uint32_t *lock)
{
    unsigned turn = 0;
    uint32_t open = 0;
    while (!__atomic_compare_exchange_n(lock, &open, 1, true, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
        if (turn == 0)
            engine_count(&engine_counts.lock_waits);
        open = 0;
        engine_relax(&turn);
    }
}

static void spin_unlock(uint32_t *lock)
{
    STORE(lock, 0);
}

static bool spin_semaphore_try(uint32_t *semaphore)
{
    uint32_t value = LOAD(semaphore);
    while (value > 0) {
        if (__atomic_compare_exchange_n(semaphore, &value, value - 1, true, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            return true;
    }
    return false;
}

static void spin_semaphore_wait(uint32_t *semaphore)
{
    unsigned turn = 0;
    while (!spin_semaphore_try(semaphore))
        engine_relax(&turn);
}

static void spin_semaphore_post(uint32_t *semaphore)
{
    __atomic_fetch_add(semaphore, 1, __ATOMIC_RELEASE);
}

/* ------------------------------------------------------------------------------------------------ the library, one user */

static void lock(pthread_mutex_t *mutex, uint32_t *spin)
{
    if (!mmt_design.pthread) {
        spin_lock(spin);
    } else if (pthread_mutex_trylock(mutex) != 0) {
        engine_count(&engine_counts.lock_waits);
        pthread_mutex_lock(mutex);
    }
}

static void unlock(pthread_mutex_t *mutex, uint32_t *spin)
{
    if (mmt_design.pthread)
        pthread_mutex_unlock(mutex);
    else
        spin_unlock(spin);
}

void library_lock(void)
{
    lock(&library_mutex, &library_spin);
}

void library_unlock(void)
{
    unlock(&library_mutex, &library_spin);
}

/* The one place where "no engine's lock while calling the backend" does not hold: this lock is about the backend.  A call
 * that the backend makes itself goes around it. */
void library_free(void *block)
{
    if (!mmt_design.allocate_at_client) {
        backend.free(block);
        return;
    }
    library_lock();
    engine_bypass++;
    backend.free(block);
    engine_bypass--;
    library_unlock();
}

void *shared_allocate(size_t size)
{
    library_lock();
    engine_bypass++;
    void *block = backend.malloc(size);
    engine_bypass--;
    library_unlock();
    return block;
}

/* ---------------------------------------------------------------------------------- designs 3 and 4: one at a time */

static void wait_for_room(void)
{
    if (!mmt_design.pthread) {
        spin_semaphore_wait(&room);
        return;
    }
    int cancel; /* sem_wait is a cancellation point, free is none */
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    while (sem_wait(&room_pthread) != 0)
        ;
    pthread_setcancelstate(cancel, NULL);
}

void shared_release(void *block)
{
    if (!manager_ready()) {
        library_free(block);
        return;
    }
    engine_count(&engine_counts.handed);
    wait_for_room();
    lock(&queue_mutex, &queue_spin);
    queue.entries[(queue.first + queue.count++) % MMT_QUEUE] = block;
    unlock(&queue_mutex, &queue_spin);
    if (mmt_design.pthread) {
        sem_post(&items_pthread);
    } else {
        spin_semaphore_post(&items);
        manager_wake();
    }
}

static bool any_items(void)
{
    return LOAD(&items) > 0;
}

/* False: nobody is left to serve. */
static bool wait_for_item(void)
{
    if (!mmt_design.pthread) {
        while (!spin_semaphore_try(&items)) {
            if (!manager_sleep(any_items))
                return false;
        }
        return true;
    }
    for (;;) {
        struct timespec limit;
        clock_gettime(CLOCK_MONOTONIC, &limit);
        limit.tv_sec++;
        manager_end();
        bool there = sem_clockwait(&items_pthread, CLOCK_MONOTONIC, &limit) == 0;
        manager_begin();
        manager_checkpoint();
        if (there)
            return true;
        if (manager_is_alone())
            return false;
    }
}

void shared_manage(void)
{
    manager_begin();
    while (wait_for_item()) {
        lock(&queue_mutex, &queue_spin);
        void *block = queue.entries[queue.first];
        queue.first = (queue.first + 1) % MMT_QUEUE;
        queue.count--;
        unlock(&queue_mutex, &queue_spin);
        if (mmt_design.pthread)
            sem_post(&room_pthread);
        else
            spin_semaphore_post(&room);
        library_free(block);
        manager_checkpoint();
    }
    manager_end();
}

/* --------------------------------------------------------------------------------------------------------- start, fork */

/* The semaphores say what the queue holds. */
static void semaphores_init(void)
{
    items = queue.count;
    room = MMT_QUEUE - queue.count;
    sem_init(&items_pthread, 0, items);
    sem_init(&room_pthread, 0, room);
}

void shared_start(void)
{
    semaphores_init();
}

void shared_fork_prepare(void)
{
    if (!mmt_design.allocate_at_client)
        return;
    lock(&queue_mutex, &queue_spin);
    library_lock();
}

void shared_fork_parent(void)
{
    if (!mmt_design.allocate_at_client)
        return;
    library_unlock();
    unlock(&queue_mutex, &queue_spin);
}

void shared_fork_child(void)
{
    library_mutex = queue_mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    library_spin = queue_spin = 0;
    semaphores_init();
}
