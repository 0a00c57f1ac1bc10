/* SPDX-License-Identifier: MIT
 *
 * Why: the thesis's second attempt (6.2, figures 6.6-6.11): talk less.  The manager keeps bins of ready blocks, one bin for
 * each power of two, and malloc takes the first block of its bin's queue under that bin's mutex.  No thread is asked unless
 * the bin is empty (a miss).  A bin's size starts at 0 and grows by one with each miss, so that sizes the program uses get
 * longer queues; a refresh fills every bin that is under half of its size up to half.  free puts the address into a circular
 * array under a mutex of its own, and the manager gives those to the backend.  Refreshes: after 1,000 mallocs, after 100
 * frees, at once on a miss or a full array.
 *
 * Ours: a bin's size is bounded in bytes, too (bins.h); freed blocks above the largest bin go to the backend at once, since
 * a thousand of those waiting in the array could be gigabytes.
 *
 * Lock order: manager's work < bins by index < array.  The manager calls the backend with no bin or array lock held.
 */
#include "bins.h"

#include <pthread.h>

#define ARRAY_ROOM 1024u

struct bin {
    _Alignas(64) pthread_mutex_t lock;
    pthread_cond_t filled;
    struct block *head, *tail; /* the bin queue: taken at the head, refilled at the tail (first in, first out) */
    uint32_t blocks;           /* in the queue */
    uint32_t size;             /* how many it may hold; never falls */
    uint32_t failures;         /* refills for which the backend had no memory */
};

static struct bin bins[POWER_BINS];

static struct {
    pthread_mutex_t lock;
    pthread_cond_t emptied;
    void *addresses[ARRAY_ROOM];
    uint32_t first, count;
} array;

static _Alignas(64) uint32_t mallocs, frees;        /* since the last refresh */
static _Alignas(64) uint32_t malloc_refresh_wanted; /* stored by anyone, polled and taken by the manager */
static uint32_t free_refresh_wanted;

static size_t block_bytes(unsigned index)
{
    return (size_t)1 << (index + BIN_SMALLEST_SHIFT);
}

static void signal_refresh(uint32_t *which)
{
    STORE(which, 1);
    manager_wake();
}

/* A wait on a condition variable is a cancellation point; malloc and free are none. */
static void wait_locked(pthread_cond_t *condition, pthread_mutex_t *lock)
{
    int cancel;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    pthread_cond_wait(condition, lock);
    pthread_setcancelstate(cancel, NULL);
}

static struct block *take_locked(struct bin *bin)
{
    struct block *block = bin->head;
    if (block != NULL) {
        bin->head = block->next;
        bin->blocks--;
    }
    return block;
}

/* thesis figure 6.9 */
static void *locked_bins_allocate(size_t size)
{
    if (!manager_ready())
        return backend.malloc(size);
    unsigned index = bin_for_request(size);
    struct bin *bin = &bins[index];
    if (refresh_due(&mallocs, MALLOCS_PER_REFRESH))
        signal_refresh(&malloc_refresh_wanted);
    pthread_mutex_lock(&bin->lock);
    struct block *block = take_locked(bin);
    if (UNLIKELY(block == NULL)) { /* a miss: grow, ask for an immediate refresh, wait for a block */
        uint32_t failures = bin->failures;
        if (bin->size < bin_size_most(block_bytes(index)))
            bin->size++;
        engine_count(&engine_counts.messages);
        do {
            signal_refresh(&malloc_refresh_wanted);
            wait_locked(&bin->filled, &bin->lock);
            block = take_locked(bin);
        } while (block == NULL && bin->failures == failures);
    }
    pthread_mutex_unlock(&bin->lock);
    return block != NULL ? block : backend.malloc(size);
}

/* thesis figure 6.10 */
static void locked_bins_release(void *block)
{
    if (!manager_ready() || backend.usable(block) > ENGINE_LARGE_BLOCK) {
        backend.free(block);
        return;
    }
    pthread_mutex_lock(&array.lock);
    while (array.count == ARRAY_ROOM) {
        signal_refresh(&free_refresh_wanted);
        wait_locked(&array.emptied, &array.lock);
    }
    array.addresses[(array.first + array.count++) % ARRAY_ROOM] = block;
    bool due = refresh_due(&frees, FREES_PER_REFRESH);
    pthread_mutex_unlock(&array.lock);
    if (due) {
        engine_count(&engine_counts.handed);
        signal_refresh(&free_refresh_wanted);
    }
}

/* ---------------------------------------------------------------------------------------- manager (thesis figure 6.11) */

/* Under half full: fill to half.  Half of an odd size is rounded up, or a bin of size one would never be filled. */
static void refill(unsigned index)
{
    struct bin *bin = &bins[index];
    struct block *first = NULL, *last = NULL;
    pthread_mutex_lock(&bin->lock);
    uint32_t half = (bin->size + 1) / 2;
    uint32_t missing = bin->blocks < half ? half - bin->blocks : 0;
    pthread_mutex_unlock(&bin->lock);
    uint32_t made = 0;
    while (made < missing) {
        struct block *block = backend.malloc(block_bytes(index));
        if (block == NULL)
            break;
        block->next = NULL;
        if (last != NULL)
            last->next = block;
        else
            first = block;
        last = block;
        made++;
    }
    if (missing == 0)
        return;
    pthread_mutex_lock(&bin->lock);
    if (made > 0) {
        if (bin->head != NULL)
            bin->tail->next = first;
        else
            bin->head = first;
        bin->tail = last;
        bin->blocks += made;
    }
    bin->failures += made < missing;
    pthread_cond_broadcast(&bin->filled);
    pthread_mutex_unlock(&bin->lock);
}

static void empty_array(void)
{
    void *batch[FREES_PER_REFRESH];
    uint32_t count;
    do {
        pthread_mutex_lock(&array.lock);
        for (count = 0; count < FREES_PER_REFRESH && array.count > 0; count++, array.count--) {
            batch[count] = array.addresses[array.first];
            array.first = (array.first + 1) % ARRAY_ROOM;
        }
        pthread_cond_broadcast(&array.emptied);
        pthread_mutex_unlock(&array.lock);
        for (uint32_t i = 0; i < count; i++)
            backend.free(batch[i]);
    } while (count == FREES_PER_REFRESH && LOAD(&malloc_refresh_wanted) == 0);
    if (count == FREES_PER_REFRESH) /* left for a malloc that waits; to be gone on with */
        STORE(&free_refresh_wanted, 1);
}

static bool refresh_wanted(void)
{
    return LOAD(&malloc_refresh_wanted) != 0 || LOAD(&free_refresh_wanted) != 0;
}

static void locked_bins_manage(void)
{
    manager_begin();
    for (;;) {
        manager_checkpoint();
        if (LOAD(&malloc_refresh_wanted) != 0) {
            STORE(&malloc_refresh_wanted, 0);
            FENCE(); /* a miss from here on asks again; one from before is seen by the refill */
            for (unsigned i = 0; i < POWER_BINS; i++)
                refill(i);
        } else if (LOAD(&free_refresh_wanted) != 0) {
            STORE(&free_refresh_wanted, 0);
            FENCE();
            empty_array();
        } else if (!manager_sleep(refresh_wanted)) {
            break;
        }
    }
    manager_end();
}

/* --------------------------------------------------------------------------------------------------------- start, fork */

static void locks_init(void)
{
    for (unsigned i = 0; i < POWER_BINS; i++) {
        bins[i].lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
        bins[i].filled = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
    }
    array.lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    array.emptied = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
}

static void locked_bins_fork_prepare(void)
{
    manager_pause();
    for (unsigned i = 0; i < POWER_BINS; i++)
        pthread_mutex_lock(&bins[i].lock);
    pthread_mutex_lock(&array.lock);
}

static void locked_bins_fork_parent(void)
{
    pthread_mutex_unlock(&array.lock);
    for (unsigned i = 0; i < POWER_BINS; i++)
        pthread_mutex_unlock(&bins[i].lock);
    manager_resume();
}

/* Every queue is whole, and so is the array: the child keeps both. */
static void locked_bins_fork_child(void)
{
    locks_init();
}

const struct engine engine = {
    .name = "locked_bins",
    .largest = ENGINE_LARGEST,
    .start = locks_init,
    .allocate = locked_bins_allocate,
    .release = locked_bins_release,
    .manage = locked_bins_manage,
    .fork_prepare = locked_bins_fork_prepare,
    .fork_parent = locked_bins_fork_parent,
    .fork_child = locked_bins_fork_child,
};
