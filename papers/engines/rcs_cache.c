/* SPDX-License-Identifier: MIT
 *
 * Why: LFMalloc's other use of restartable sections, from its outlook (5.1): "a simple free block cache stacked on top
 * of the existing malloc subsystem".  For each cid and size class there is a list of free blocks, popped and pushed in
 * sections of a few plain instructions; a list that is empty is refilled from the unmodified library below, and of one
 * that is full half goes back there, both in bulk.  So a malloc of 1990 gets a fast path without locks, and neither it
 * nor the program knows.
 *
 * Sections, cids and the fence are the library's own (src/rcs).  The class of a freed block is read from what the
 * backend says is usable, rounded down, as in all engines; that of a request is rounded up.  The slow paths change a
 * list by rcs_compare_and_store: they take all of one, or put one where there is none.
 *
 * fork: a list must not change while the snapshot is made.  So prepare gives every cid the closed cache, from which
 * nothing can be popped and to which nothing can be pushed, and fences: whoever was in a section starts again and finds
 * that one.  Other threads use the backend meanwhile, nobody waits.  Where the fence is refused the child forgets what
 * was cached: a list may be torn.
 *
 * Without restartable sequences (old kernels, Valgrind) every request goes to the backend.  Left out: malloc in the
 * child of a vfork, whose cid another thread may have by now.
 */
#include "rcs_cache.h"
#include "backend.h"
#include "counts.h"
#include "engine.h"
#include "manager.h"
#include "say.h"

#include "os/os.h"
#include "rcs/rcs.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#define STEP         16u
#define FINE_BYTES   1024u /* up to here a class every STEP bytes */
#define LIST_BYTES   (32u * 1024)
#define LIST_MOST    256u
#define LIST_LEAST   4u
#define COUNT_MASK   (((uint64_t)1 << RCS_CACHE_COUNT_BITS) - 1)
#define CLOSED_LIST  COUNT_MASK /* no block, and more than any limit */

uint16_t rcs_cache_limits[RCS_CACHE_CLASSES];

static struct cache closed;
static struct cache *caches; /* of every cid; NULL: there are no sections here */
static uint16_t class_bytes[RCS_CACHE_CLASSES];
static uint8_t class_of_request[ENGINE_LARGEST / STEP + 1]; /* by (size + 15) / 16: the least that is large enough */
static uint8_t class_of_block[ENGINE_LARGEST / STEP + 1];   /* by usable / 16: the greatest that it can serve */

static struct heap *as_heap(struct cache *cache)
{
    return (struct heap *)(void *)cache;
}

/* The running cid's cache at this moment; sections make sure. */
static struct cache *cache_now(void)
{
    return (struct cache *)(void *)LOAD(&heap_of_cid[sync_slot()]);
}

static uint64_t list_word(void *top, uint64_t count)
{
    return (uint64_t)(uintptr_t)top << RCS_CACHE_COUNT_BITS | count;
}

static void *list_top(uint64_t list)
{
    return (void *)(uintptr_t)(list >> RCS_CACHE_COUNT_BITS);
}

static uint64_t list_below(uint64_t list)
{
    return *(uint64_t *)list_top(list);
}

/* `list` in the place of `expected`; false: it was not that, or this thread was interrupted. */
static bool list_replace(struct cache *cache, uint32_t class, uint64_t expected, uint64_t list)
{
    uint64_t *place = &cache->lists[class];
    return rcs_compare_and_store(as_heap(cache), place, expected, place, list) == rcs_done;
}

/* -----------------------------------------------------------------------------------------------------------
 * allocation */

static void return_all(uint64_t list)
{
    while (list_top(list) != NULL) {
        void *block = list_top(list);
        list = list_below(list);
        backend.free(block);
    }
}

/* A quarter of what a list may hold, so that a size that is used once costs little; the list is in reverse order, so
 * that what was allocated first is popped first. */
static uint64_t make_list(uint32_t class)
{
    uint64_t list = 0, most = rcs_cache_limits[class] / 4;
    void *blocks[LIST_MOST / 4];
    uint64_t made = 0;
    while (made < most && (blocks[made] = backend.malloc(class_bytes[class])) != NULL)
        made++;
    for (uint64_t i = made; i-- > 0;) {
        *(uint64_t *)blocks[i] = list;
        list = list_word(blocks[i], made - i);
    }
    return list;
}

/* Refills the list if it is empty.  If it is not, the section was interrupted: rare enough to do without the list. */
void *rcs_cache_allocate_slow(uint32_t class)
{
    struct cache *cache = cache_now();
    void *block = backend.malloc(class_bytes[class]);
    if (block == NULL || LOAD(&cache->lists[class]) != 0)
        return block;
    engine_count(&engine_counts.messages);
    uint64_t list = make_list(class);
    if (!list_replace(cache, class, 0, list))
        return_all(list);
    return block;
}

static void *rcs_cache_allocate(size_t size)
{
    if (UNLIKELY(caches == NULL))
        return backend.malloc(size);
    return rcs_cache_pop(class_of_request[(size + STEP - 1) / STEP]);
}

/* ---------------------------------------------------------------------------------------------------------
 * deallocation */

/* Takes the whole list, gives the upper half to the backend and puts the rest back. */
static void return_half(struct cache *cache, uint32_t class)
{
    uint64_t list = LOAD(&cache->lists[class]);
    if ((list & COUNT_MASK) < rcs_cache_limits[class] || !list_replace(cache, class, list, 0))
        return;
    engine_count(&engine_counts.handed);
    while ((list & COUNT_MASK) > rcs_cache_limits[class] / 2) {
        void *block = list_top(list);
        list = list_below(list);
        backend.free(block);
    }
    if (!list_replace(cache, class, 0, list))
        return_all(list);
}

/* Makes room in the list if it is full.  The block itself goes back to the backend. */
void rcs_cache_release_slow(uint32_t class, void *block)
{
    int saved = errno;
    struct cache *cache = cache_now();
    if (cache != &closed)
        return_half(cache, class);
    backend.free(block);
    errno = saved;
}

static __attribute__((noinline)) void release_to_backend(void *block)
{
    int saved = errno;
    backend.free(block);
    errno = saved;
}

static void rcs_cache_release(void *block)
{
    size_t usable = backend.usable(block);
    if (UNLIKELY(usable - STEP > ENGINE_LARGEST - STEP || ((uintptr_t)block & 15) != 0 || caches == NULL))
        release_to_backend(block);
    else
        rcs_cache_push(class_of_block[usable / STEP], block);
}

/* --------------------------------------------------------------------------------------------------------- start,
 * fork */

static void classes_start(void)
{
    uint32_t bytes = 0;
    for (uint32_t class = 0; class < RCS_CACHE_CLASSES; class++) {
        uint32_t before = bytes;
        uint32_t octave = bytes < FINE_BYTES ? 0 : 1u << (31 - __builtin_clz(bytes));
        bytes += octave == 0 ? STEP : octave / 4;
        uint32_t limit = LIST_BYTES / bytes;
        class_bytes[class] = (uint16_t)bytes;
        rcs_cache_limits[class] = (uint16_t)(limit > LIST_MOST ? LIST_MOST : limit < LIST_LEAST ? LIST_LEAST : limit);
        for (uint32_t step = before / STEP + 1; step <= bytes / STEP; step++)
            class_of_request[step] = (uint8_t)class;
        for (uint32_t step = bytes / STEP; step <= ENGINE_LARGEST / STEP; step++)
            class_of_block[step] = (uint8_t)class;
        closed.lists[class] = CLOSED_LIST;
    }
}

static void caches_open(void)
{
    for (unsigned slot = 0; caches != NULL && slot < slot_count; slot++)
        STORE(&heap_of_cid[slot], as_heap(&caches[slot]));
}

static void rcs_cache_start(void)
{
    classes_start();
    os_init();
    rcs_start(sync_rcs, as_heap(&closed));
    if (sync_mode != sync_rcs) {
        engine_say("rcs_cache: no restartable sequences here; every request goes to the library below");
        return;
    }
    void *memory =
        mmap(NULL, slot_count * sizeof *caches, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    caches = memory != MAP_FAILED ? memory : NULL;
    caches_open();
}

static void rcs_cache_manage(void)
{
}

static bool closed_at_fork;

/* There is no manager to pause, but forks are to come one at a time. */
static void rcs_cache_fork_prepare(void)
{
    manager_pause();
    for (unsigned slot = 0; caches != NULL && slot < slot_count; slot++)
        STORE(&heap_of_cid[slot], as_heap(&closed));
    closed_at_fork = caches == NULL || (rcs_has_fence() && rcs_fence());
}

static void rcs_cache_fork_parent(void)
{
    caches_open();
    manager_resume();
}

static void rcs_cache_fork_child(void)
{
    if (!closed_at_fork && caches != NULL)
        memset(caches, 0, slot_count * sizeof *caches);
    caches_open();
}

const struct engine engine = {
    .name = "rcs_cache",
    .largest = ENGINE_LARGEST,
    .keeps_errno = true,
    .start = rcs_cache_start,
    .allocate = rcs_cache_allocate,
    .release = rcs_cache_release,
    .manage = rcs_cache_manage,
    .fork_prepare = rcs_cache_fork_prepare,
    .fork_parent = rcs_cache_fork_parent,
    .fork_child = rcs_cache_fork_child,
};
