/* SPDX-License-Identifier: MIT
 *
 * Why: MMT's designs 3, 4 and 5 (section V-B) ask whether the program's thread should allocate by itself and leave only
 * deallocation to the server.  Both then work in the library at the same time, whose free lists take a lock (III-C),
 * and the designs show what that costs: 3 with Pthread primitives (sync.h), 4 with "minimalist" ones (III-E1: a
 * spinning compare-and-swap lock and semaphore), 5 with 4's and deallocation in bulk.
 *
 * Designs 3 and 4 pass single addresses through one queue of 200 entries, a lock for the queue and two semaphores:
 * items for the server, room for the clients.  The library below has locks of its own today; the paper's lock around it
 * is part of the design and is taken all the same.
 *
 * The paper's minimalist primitives spin without bound.  These spin briefly, then yield, then sleep for 50 us at a time
 * (engine_relax); the server of design 4 sleeps as all managers do.
 *
 * fork: the server is paused, and nobody holds the queue's lock who came before; who comes after goes around the queue
 * (around.h).  Who holds the library's lock is in the backend, whose own handlers see to that.
 */
#include "mmt_shared.h"
#include "around.h"
#include "backend.h"
#include "counts.h"
#include "manager.h"
#include "mmt_clients.h"
#include "sync.h"

#define IDLE_MS 1000

static struct mutex library_mutex, queue_mutex;
static struct semaphore items_sleeping, room_sleeping;
static uint32_t library_spin, queue_spin;
static uint32_t items, room;

static struct {
    void *entries[MMT_QUEUE];
    uint32_t first, count;
} queue;

/* ---------------------------------------------------------------------------------------- minimalist primitives
 * (III-E1) */

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

static void spin_semaphore_post(uint32_t *semaphore)
{
    __atomic_fetch_add(semaphore, 1, __ATOMIC_RELEASE);
}

/* ------------------------------------------------------------------------------------------------ the library, one
 * user */

static void lock(struct mutex *mutex, uint32_t *spin)
{
    if (mmt_design.sleeping)
        mutex_lock(mutex);
    else
        spin_lock(spin);
}

static void unlock(struct mutex *mutex, uint32_t *spin)
{
    if (mmt_design.sleeping)
        mutex_unlock(mutex);
    else
        spin_unlock(spin);
}

/* The one place where "no engine's lock while calling the backend" does not hold: this lock is about the backend.  A
 * call that the backend makes itself goes around it, and so does everybody while a fork is under way. */
static bool library_enter(void)
{
    if (!mmt_design.allocate_at_client || fork_is_under_way())
        return false;
    lock(&library_mutex, &library_spin);
    engine_bypass++;
    return true;
}

static void library_leave(bool entered)
{
    if (!entered)
        return;
    engine_bypass--;
    unlock(&library_mutex, &library_spin);
}

void library_free(void *block)
{
    bool entered = library_enter();
    backend.free(block);
    library_leave(entered);
}

void *library_malloc(size_t size)
{
    bool entered = library_enter();
    void *block = backend.malloc(size);
    library_leave(entered);
    return block;
}

/* ---------------------------------------------------------------------------------- designs 3 and 4: one at a time */

/* False: a fork is under way, the server may be paused. */
static bool wait_for_room(void)
{
    unsigned turn = 0;
    bool got = false;
    while (!got && !fork_is_under_way()) {
        got = mmt_design.sleeping ? semaphore_wait(&room_sleeping, LOOK_MS) : spin_semaphore_try(&room);
        if (!got && !mmt_design.sleeping)
            engine_relax(&turn);
    }
    return got;
}

static void post(struct semaphore *sleeping, uint32_t *spinning)
{
    if (mmt_design.sleeping)
        semaphore_post(sleeping);
    else
        spin_semaphore_post(spinning);
}

static bool queue_add(void *block)
{
    if (!wait_for_room())
        return false;
    lock(&queue_mutex, &queue_spin);
    bool closed = fork_is_under_way();
    if (!closed)
        queue.entries[(queue.first + queue.count++) % MMT_QUEUE] = block;
    unlock(&queue_mutex, &queue_spin);
    if (closed)
        post(&room_sleeping, &room);
    return !closed;
}

void shared_release(void *block)
{
    if (!manager_ready() || !queue_add(block)) {
        library_free(block);
        return;
    }
    engine_count(&engine_counts.handed);
    post(&items_sleeping, &items);
    if (!mmt_design.sleeping)
        manager_wake(0);
}

static bool any_items(void)
{
    return LOAD(&items) > 0;
}

/* False: nobody is left to serve. */
static bool wait_for_item(void)
{
    if (!mmt_design.sleeping) {
        while (!spin_semaphore_try(&items)) {
            if (!manager_sleep(any_items))
                return false;
        }
        return true;
    }
    for (;;) {
        manager_end();
        bool there = semaphore_wait(&items_sleeping, IDLE_MS);
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
        post(&room_sleeping, &room);
        library_free(block);
        manager_checkpoint();
    }
    manager_end();
}

/* --------------------------------------------------------------------------------------------------------- start,
 * fork */

/* The semaphores say what the queue holds. */
static void semaphores_init(void)
{
    items = queue.count;
    room = MMT_QUEUE - queue.count;
    items_sleeping = (struct semaphore){.value = items};
    room_sleeping = (struct semaphore){.value = room};
}

void shared_start(void)
{
    semaphores_init();
}

void shared_fork_prepare(void)
{
    lock(&queue_mutex, &queue_spin);
    unlock(&queue_mutex, &queue_spin);
}

void shared_fork_child(void)
{
    library_mutex = queue_mutex = (struct mutex){0};
    library_spin = queue_spin = 0;
    semaphores_init();
}
