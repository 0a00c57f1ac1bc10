/* SPDX-License-Identifier: MIT
 *
 * Why: the thesis's second attempt (6.2, figures 6.6-6.11): talk less.  The manager keeps bins of ready blocks, one bin
 * for each power of two, and malloc takes the first block of its bin's queue under that bin's mutex.  No thread is
 * asked unless the bin is empty (a miss).  A bin's size starts at 0 and grows by one with each miss, so that sizes the
 * program uses get longer queues; a refresh fills every bin that is under half of its size up to half.  free puts the
 * address into a circular array under a mutex of its own, and the manager gives those to the backend.  Refreshes: after
 * 1,000 mallocs, after 100 frees, at once on a miss or a full array.
 *
 * Ours: a bin's size is bounded in bytes, too (bins.h); freed blocks above the largest bin go to the backend at once,
 * since a thousand of those waiting in the array could be gigabytes.
 *
 * The manager calls the backend with no bin or array lock held.  Nobody holds two of these locks.
 *
 * fork: the manager is paused; each lock is taken once, to see everybody out who came before, and then nobody changes
 * what it protects until the fork is done: requests go around the bins (around.h).
 */
#include "around.h"
#include "backend.h"
#include "bins.h"
#include "counts.h"
#include "manager.h"
#include "sync.h"

#define ARRAY_ROOM 1024u

struct bin {
    _Alignas(64) struct mutex lock;
    struct condition filled;
    struct block *head, *tail; /* the bin queue: taken at the head, refilled at the tail (first in, first out) */
    uint32_t blocks;           /* in the queue */
    uint32_t size;             /* how many it may hold; never falls */
    uint32_t failures;         /* refills for which the backend had no memory */
};

static struct bin bins[POWER_BINS];

static struct {
    struct mutex lock;
    struct condition emptied;
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
    manager_wake(0);
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

/* A miss: grow, ask for an immediate refresh, wait for a block.  NULL: there is none to be had. */
static struct block *wait_for_block_locked(struct bin *bin, size_t bytes)
{
    struct block *block = NULL;
    uint32_t failures = bin->failures;
    if (bin->size < bin_size_most(bytes))
        bin->size++;
    engine_count(&engine_counts.messages);
    while (block == NULL && bin->failures == failures && !fork_is_under_way()) {
        signal_refresh(&malloc_refresh_wanted);
        condition_wait(&bin->filled, &bin->lock, LOOK_MS);
        block = fork_is_under_way() ? NULL : take_locked(bin);
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
    struct block *block = NULL;
    if (refresh_due(&mallocs, MALLOCS_PER_REFRESH))
        signal_refresh(&malloc_refresh_wanted);
    mutex_lock(&bin->lock);
    if (!fork_is_under_way()) {
        block = take_locked(bin);
        if (UNLIKELY(block == NULL))
            block = wait_for_block_locked(bin, block_bytes(index));
    }
    mutex_unlock(&bin->lock);
    return block != NULL ? block : backend.malloc(size);
}

/* False: a fork is under way, and the array as it is. */
static bool array_add_locked(void *block)
{
    while (array.count == ARRAY_ROOM && !fork_is_under_way()) {
        signal_refresh(&free_refresh_wanted);
        condition_wait(&array.emptied, &array.lock, LOOK_MS);
    }
    if (fork_is_under_way())
        return false;
    array.addresses[(array.first + array.count++) % ARRAY_ROOM] = block;
    return true;
}

/* thesis figure 6.10 */
static void locked_bins_release(void *block)
{
    if (!manager_ready() || backend.usable(block) > ENGINE_LARGE_BLOCK) {
        backend.free(block);
        return;
    }
    mutex_lock(&array.lock);
    bool added = array_add_locked(block);
    bool due = added && refresh_due(&frees, FREES_PER_REFRESH);
    mutex_unlock(&array.lock);
    if (!added)
        backend.free(block);
    if (due) {
        engine_count(&engine_counts.handed);
        signal_refresh(&free_refresh_wanted);
    }
}

/* ---------------------------------------------------------------------------------------- manager (thesis figure
 * 6.11) */

/* Under half full: fill to half.  Half of an odd size is rounded up, or a bin of size one would never be filled. */
static void refill(unsigned index)
{
    struct bin *bin = &bins[index];
    struct block *first = NULL, *last = NULL;
    mutex_lock(&bin->lock);
    uint32_t half = (bin->size + 1) / 2;
    uint32_t missing = bin->blocks < half ? half - bin->blocks : 0;
    mutex_unlock(&bin->lock);
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
    mutex_lock(&bin->lock);
    if (made > 0) {
        if (bin->head != NULL)
            bin->tail->next = first;
        else
            bin->head = first;
        bin->tail = last;
        bin->blocks += made;
    }
    bin->failures += made < missing;
    condition_broadcast(&bin->filled);
    mutex_unlock(&bin->lock);
}

static void empty_array(void)
{
    void *batch[FREES_PER_REFRESH];
    uint32_t count;
    do {
        mutex_lock(&array.lock);
        for (count = 0; count < FREES_PER_REFRESH && array.count > 0; count++, array.count--) {
            batch[count] = array.addresses[array.first];
            array.first = (array.first + 1) % ARRAY_ROOM;
        }
        condition_broadcast(&array.emptied);
        mutex_unlock(&array.lock);
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

/* --------------------------------------------------------------------------------------------------------- start,
 * fork */

static void nothing(void)
{
}

static void see_out(struct mutex *lock)
{
    mutex_lock(lock);
    mutex_unlock(lock);
}

static void locked_bins_fork_prepare(void)
{
    manager_pause();
    for (unsigned i = 0; i < POWER_BINS; i++)
        see_out(&bins[i].lock);
    see_out(&array.lock);
}

/* Every queue is whole, and so is the array: the child keeps both, but not who held and waited. */
static void locked_bins_fork_child(void)
{
    for (unsigned i = 0; i < POWER_BINS; i++) {
        bins[i].lock = (struct mutex){0};
        bins[i].filled = (struct condition){0};
    }
    array.lock = (struct mutex){0};
    array.emptied = (struct condition){0};
}

const struct engine engine = {
    .name = "locked_bins",
    .largest = ENGINE_LARGEST,
    .start = nothing,
    .allocate = locked_bins_allocate,
    .release = locked_bins_release,
    .manage = locked_bins_manage,
    .fork_prepare = locked_bins_fork_prepare,
    .fork_parent = manager_resume,
    .fork_child = locked_bins_fork_child,
};
