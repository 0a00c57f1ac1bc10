/* SPDX-License-Identifier: MIT
 *
 * Why: the thesis's third attempt (6.3, figures 6.12-6.15, app. E): the bins of 6.2 without mutexes, two atomic
 * operations a call.  malloc reserves a block by an atomic count, which guarantees that one is there, then takes the
 * first one by compare-and-swap.  free puts the block, still hot in the cache, at the front of its bin unless the bin
 * is full, else on a linked free list for the manager.  The written thing here is ours from the description; the
 * published listing has holes:
 *
 * 1. ABA.  It takes {head = A, next = A->next} and swaps head from A to next.  If in between A and next are taken and A
 *    is put back, the swap succeeds and the bin's head is a block the program owns.  Here the word that is swapped
 *    holds the head *and the number of pops*, 16 bytes: a successful swap means that nothing was taken since `pops` was
 *    read, which is before `first` was, so `first` was in the bin all the time and its link stood still.  64 bits do
 *    not wrap.
 * 2. Reading A->next when A is gone: taken, freed, given to the backend, unmapped.  A page fault, counter or not.  The
 *    manager therefore gives a block to the backend only after an instant at which no thread was between reservation
 *    and swap: every reservation is followed by exactly one pop, so that is `pops == reserved`, and costs the program
 *    nothing (bin_is_quiet).  Hence no other path may give a bin's blocks to the backend: release() below is called
 *    even where the engine is gone around (release_always), and realloc copies (entry.c).
 * 3. The last block.  The listing's free() sets the bin's lastblock when it fills an empty bin, while the manager may
 *    be linking behind the old one.  Here the lowest block belongs to the manager for good: it is in the list and never
 *    in the count, so nobody can reserve it and nobody but the manager appends behind it.  The listing reserves it anew
 *    at each refill; the effect during the refill is the same, and the list is never empty.
 * 4. realloc that leaks: see entry.c.
 *
 * The thesis's four header bytes are not there; the bin comes from the backend's usable size (engine.h).
 *
 * Chapter 10's proposals, SUTLER_LFB=, any of
 *   three    bins at three times powers of two between the others
 *   small    bins every 16 bytes up to 512 (malloc's blocks are aligned to 16)
 *   shrink   bins that shrink when not used
 *   fifo     freed blocks go behind the others, by way of the manager, not to the front ("16 %" is what the front gained)
 *   ordered  the blocks of a refill go into the bin by address, so that neighbours are handed out one after the other
 *   buffers  a small buffer for each thread before the shared bins
 *   bulk     these filled and emptied by one reservation and one swap for several blocks
 *   foresee  bins are filled for what usually comes next (lock_free_foresee.c)
 * and SUTLER_ENGINE_MANAGERS=n: so many heaps of bins, each with a manager; threads are given to them in turn.  A freed
 * block goes to the heap of whoever frees it, so a thread that has yet to swap in one heap may look at a block that is
 * in another one by now: no block goes to the backend before the bin has come to rest in every heap.
 *
 * Two things of the listing (app. E) that the text does not tell of, to be had with the same variable:
 *   emptiest  a refresh first fills bins that are less than an eighth full, then a quarter, then half
 *   prefetch  malloc fetches the first block's line early, and the next one's after taking it
 */
#include "lock_free_bins.h"
#include "around.h"
#include "backend.h"
#include "counts.h"
#include "manager.h"
#include "say.h"
#include "thread.h"

#include <string.h>

#define BUFFER_ROOM 16u
#define BUFFER_BULK 8u

struct heap lfb_heaps[MANAGERS_MOST];
struct lfb_options lfb_options;
__thread struct heap *lfb_mine __attribute__((tls_model("initial-exec")));

static __attribute__((noinline)) struct heap *heap_choose(void)
{
    static uint32_t chosen;
    lfb_mine = &lfb_heaps[__atomic_fetch_add(&chosen, 1, __ATOMIC_RELAXED) % manager_count];
    return lfb_mine;
}

static inline struct heap *heap_get(void)
{
    return LIKELY(lfb_mine != NULL) ? lfb_mine : heap_choose();
}

static void heap_signal(struct heap *heap, uint32_t *which)
{
    STORE(which, 1);
    manager_wake((unsigned)(heap - lfb_heaps));
}

static unsigned lfb_bin_for_request(size_t size)
{
    if (lfb_options.small && size <= 16 * LFB_FINE)
        return LFB_SHIFTED + (unsigned)((size - 1) / 16);
    unsigned index = 2 * bin_for_request(size);
    bool fits_lower = lfb_options.three && index >= 2 && size <= lfb_block_bytes(index - 1);
    return fits_lower ? index - 1 : index;
}

/* A block's usable size never changes while it is on its way through bins and program, so neither does its bin. */
unsigned lfb_bin_for_block(const void *block, size_t usable)
{
    if (usable < lfb_block_bytes(0) || usable > ENGINE_LARGE_BLOCK || ((uintptr_t)block & 15) != 0)
        return LFB_BINS;
    if (usable >= ENGINE_LARGEST)
        return 2 * (POWER_BINS - 1);
    unsigned index = 2 * (floor_log2(usable) - BIN_SMALLEST_SHIFT);
    if (lfb_options.three && usable >= lfb_block_bytes(index + 1))
        index++;
    if (lfb_options.small && lfb_block_bytes(index) <= 16 * LFB_FINE)
        return LFB_SHIFTED + (unsigned)(usable / 16 < LFB_FINE ? usable / 16 : LFB_FINE) - 1;
    return index;
}

/* Compare-and-swap of {first, pops}. */
static inline bool swap_first_and_pops(struct bin *bin, struct block *first, uint64_t pops, struct block *to,
                                       uint64_t to_pops)
{
    unsigned __int128 expected = (unsigned __int128)pops << 64 | (uintptr_t)first;
    unsigned __int128 desired = (unsigned __int128)to_pops << 64 | (uintptr_t)to;
    return __sync_bool_compare_and_swap((unsigned __int128 *)(void *)&bin->first, expected, desired);
}

/* thesis 6.3: the count is the gatekeeper.  Of the reservations that succeed, the k-th to add itself found at least k -
 * 1 there (successes are never taken back), and succeeded because `added` was greater: so never more succeed than
 * blocks were added.  A failed attempt counts until it is taken back, which can only make others miss. */
uint32_t bin_reserve(struct bin *bin, uint32_t wanted)
{
    if (bin_available(bin) <= 0)
        return 0;
    uint64_t mine = __atomic_fetch_add(&bin->reserved, wanted, __ATOMIC_SEQ_CST);
    int64_t there = (int64_t)(__atomic_load_n(&bin->added, __ATOMIC_SEQ_CST) - mine);
    uint32_t got = there <= 0 ? 0 : there < (int64_t)wanted ? (uint32_t)there : wanted;
    if (got < wanted)
        __atomic_fetch_sub(&bin->reserved, wanted - got, __ATOMIC_SEQ_CST);
    return got;
}

/* `pops` before `first` before the links (1. above).  A link is followed only after seeing that nothing was popped
 * since, so that what it points to was in the bin then, and is mapped for as long as we have not popped (2. above). */
struct block *bin_pop(struct bin *bin, uint32_t count)
{
    for (;;) {
        uint64_t pops = __atomic_load_n(&bin->pops, __ATOMIC_SEQ_CST);
        struct block *first = __atomic_load_n(&bin->first, __ATOMIC_SEQ_CST);
        struct block *next = LOAD(&first->next);
        uint32_t i = 1;
        while (i < count && LOAD(&bin->pops) == pops) {
            next = LOAD(&next->next);
            i++;
        }
        if (i == count && swap_first_and_pops(bin, first, pops, next, pops + count))
            return first;
    }
}

/* To the front; the pop count stays.  That `first` may be the same again (ABA) does no harm here: it is the block to
 * link to.  Linked first, counted after: whoever reserves finds it. */
void bin_push(struct bin *bin, struct block *first, struct block *last, uint32_t count)
{
    struct block *old = LOAD(&bin->first);
    do {
        STORE_RELAXED(&last->next, old);
    } while (!__atomic_compare_exchange_n(&bin->first, &old, first, true, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
    __atomic_fetch_add(&bin->added, count, __ATOMIC_SEQ_CST);
}

/* Not full, and set up by its first refill. */
static bool bin_has_room(struct bin *bin)
{
    return LOAD(&bin->first) != NULL && bin_available(bin) < (int64_t)LOAD_RELAXED(&bin->size);
}

/* thesis 6.3: a compare-and-swap adds; the manager alone takes away, all at once. */
static void free_list_add(struct heap *heap, struct block *block)
{
    struct block *old = LOAD_RELAXED(&heap->free_list);
    do {
        STORE_RELAXED(&block->next, old);
    } while (!__atomic_compare_exchange_n(&heap->free_list, &old, block, true, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
    if (refresh_due(&heap->frees, FREES_PER_REFRESH) && manager_ready()) {
        engine_count(&engine_counts.handed);
        heap_signal(heap, &heap->free_wanted);
    }
}

/* A miss: the bin grows by one, the manager hears which bin is waited on, and we wait for its next refill. */
static __attribute__((noinline)) void *allocate_slow(struct heap *heap, unsigned index, size_t size)
{
    struct bin *bin = &heap->bins[index];
    if (!manager_ready())
        return backend.malloc(size);
    uint32_t failed = LOAD(&bin->failed);
    if (LOAD_RELAXED(&bin->size) < bin_size_most(lfb_block_bytes(index)))
        __atomic_fetch_add(&bin->size, 1, __ATOMIC_RELAXED);
    engine_count(&engine_counts.messages);
    for (;;) {
        uint32_t filled = LOAD(&bin->filled); /* before the attempt, or a refill between it and the wait is missed */
        if (bin_reserve(bin, 1) == 1)
            return bin_pop(bin, 1);
        if (LOAD(&bin->failed) != failed)
            return backend.malloc(size);
        __atomic_fetch_or(&heap->missed, (uint64_t)1 << index, __ATOMIC_SEQ_CST);
        manager_wake((unsigned)(heap - lfb_heaps));
        uint32_t mine = 0;
        __atomic_fetch_add(&bin->waiters, 1, __ATOMIC_SEQ_CST);
        bool answered = manager_await(&bin->filled, filled, &mine);
        __atomic_fetch_sub(&bin->waiters, 1, __ATOMIC_SEQ_CST);
        if (!answered)
            return backend.malloc(size);
    }
}

/* thesis figure 6.13.  `prefetch` (app. E): the first block is fetched before anything else, and, when it is taken, the
 * one that comes next. */
static inline __attribute__((always_inline)) void *allocate_from(struct heap *heap, unsigned index, size_t size,
                                                                 bool prefetch)
{
    struct bin *bin = &heap->bins[index];
    if (prefetch)
        __builtin_prefetch(LOAD_RELAXED(&bin->first), 1, 2);
    if (UNLIKELY(refresh_due(&heap->mallocs, MALLOCS_PER_REFRESH)) && manager_ready())
        heap_signal(heap, &heap->refresh_wanted);
    if (UNLIKELY(bin_reserve(bin, 1) != 1))
        return allocate_slow(heap, index, size);
    struct block *block = bin_pop(bin, 1);
    if (prefetch)
        __builtin_prefetch(LOAD_RELAXED(&block->next), 0, 2);
    return block;
}

static __attribute__((noinline)) void *allocate_prefetching(struct heap *heap, unsigned index, size_t size)
{
    return allocate_from(heap, index, size, true);
}

static inline void *allocate_shared(struct heap *heap, unsigned index, size_t size)
{
    return UNLIKELY(lfb_options.prefetch) ? allocate_prefetching(heap, index, size)
                                          : allocate_from(heap, index, size, false);
}

/* No thread is about to look at a block of this size that has left its bin. */
static bool is_quiet(unsigned index)
{
    for (unsigned i = 0; i < manager_count; i++) {
        if (!bin_is_quiet(&lfb_heaps[i].bins[index]))
            return false;
    }
    return true;
}

/* thesis figure 6.14: hot blocks go to the front of their bin. */
static inline void release_shared(struct heap *heap, unsigned index, struct block *block)
{
    struct bin *bin = &heap->bins[index];
    if (LIKELY(bin_has_room(bin) && !lfb_options.fifo))
        bin_push(bin, block, block, 1);
    else if (UNLIKELY(LOAD_RELAXED(&manager_state) == MANAGER_FAILED) && is_quiet(index))
        backend.free(block); /* nobody empties the free list */
    else
        free_list_add(heap, block);
}

/* --------------------------------------------------------------- chapter 10: a buffer per thread over the shared
 * bins */

struct buffers {
    uint8_t count[LFB_BINS];
    struct block *blocks[LFB_BINS][BUFFER_ROOM];
};

static __thread struct buffers *my_buffers __attribute__((tls_model("initial-exec")));
static __thread bool buffers_ended __attribute__((tls_model("initial-exec")));

/* NULL at thread exit, and where there is no memory for them. */
static struct buffers *buffers_get(void)
{
    if (LIKELY(my_buffers != NULL) || buffers_ended || engine_bypass > 0)
        return my_buffers;
    my_buffers = backend.calloc(1, sizeof *my_buffers);
    if (my_buffers != NULL)
        engine_thread_own(my_buffers);
    return my_buffers;
}

/* The `count` topmost blocks of a full buffer: to the bin in one piece if it has room, else to the free list. */
static void buffer_spill(struct buffers *buffers, unsigned index, uint32_t count)
{
    struct heap *heap = heap_get();
    struct block **top = &buffers->blocks[index][buffers->count[index] - count];
    buffers->count[index] -= (uint8_t)count;
    if (lfb_options.bulk && !lfb_options.fifo && bin_has_room(&heap->bins[index])) {
        for (uint32_t i = 0; i + 1 < count; i++)
            STORE_RELAXED(&top[i]->next, top[i + 1]);
        bin_push(&heap->bins[index], top[0], top[count - 1], count);
        return;
    }
    for (uint32_t i = 0; i < count; i++)
        release_shared(heap, index, top[i]);
}

static void *buffer_allocate(struct buffers *buffers, unsigned index, size_t size)
{
    if (buffers->count[index] > 0)
        return buffers->blocks[index][--buffers->count[index]];
    struct heap *heap = heap_get();
    uint32_t got = lfb_options.bulk ? bin_reserve(&heap->bins[index], BUFFER_BULK) : 0;
    if (got == 0)
        return allocate_shared(heap, index, size);
    struct block *block = bin_pop(&heap->bins[index], got);
    for (uint32_t i = 1; i < got; i++) {
        struct block *next = block->next;
        buffers->blocks[index][buffers->count[index]++] = block;
        block = next;
    }
    return block;
}

static void lfb_thread_exit(void *mine)
{
    struct buffers *buffers = mine;
    buffers_ended = true;
    my_buffers = NULL;
    for (unsigned i = 0; i < LFB_BINS; i++) {
        if (buffers->count[i] > 0)
            buffer_spill(buffers, i, buffers->count[i]);
    }
    backend.free(buffers); /* never in a bin: nobody read a link in it */
}

/* ---------------------------------------------------------------------------------------------------------------------- */

static void *lfb_allocate(size_t size)
{
    unsigned index = lfb_bin_for_request(size);
    struct buffers *buffers = lfb_options.buffers ? buffers_get() : NULL;
    return buffers != NULL ? buffer_allocate(buffers, index, size) : allocate_shared(heap_get(), index, size);
}

/* Also called where the engine is gone around (release_always): in a forking thread and in the manager.  It waits for
 * nobody. */
static void lfb_release(void *block)
{
    unsigned index = lfb_bin_for_block(block, backend.usable(block));
    if (UNLIKELY(index == LFB_BINS)) { /* never in a bin, so nobody reads a link in it */
        backend.free(block);
        return;
    }
    struct buffers *buffers = lfb_options.buffers ? buffers_get() : NULL;
    if (buffers == NULL) {
        release_shared(heap_get(), index, block);
        return;
    }
    if (buffers->count[index] == BUFFER_ROOM)
        buffer_spill(buffers, index, lfb_options.bulk ? BUFFER_BULK : 1);
    buffers->blocks[index][buffers->count[index]++] = block;
}

static bool *option_named(const char *name)
{
    static const struct {
        const char *name;
        bool *option;
    } options[] = {{"three", &lfb_options.three},       {"small", &lfb_options.small},
                   {"shrink", &lfb_options.shrink},     {"fifo", &lfb_options.fifo},
                   {"ordered", &lfb_options.ordered},   {"buffers", &lfb_options.buffers},
                   {"bulk", &lfb_options.bulk},         {"foresee", &lfb_options.foresee},
                   {"emptiest", &lfb_options.emptiest}, {"prefetch", &lfb_options.prefetch}};
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        if (strcmp(name, options[i].name) == 0)
            return options[i].option;
    }
    return NULL;
}

static void lfb_start(void)
{
    char names[128] = "", *rest = names;
    const char *value = engine_option("SUTLER_LFB");
    if (value != NULL)
        strncat(names, value, sizeof names - 1);
    for (char *name; (name = strsep(&rest, ",")) != NULL;) {
        bool *option = option_named(name);
        if (option != NULL)
            *option = true;
        else if (name[0] != '\0')
            engine_say("SUTLER_LFB: unknown value '%s' (see papers/engines.md); ignored", name);
    }
    lfb_options.buffers |= lfb_options.bulk;
    managers_read();
}

const struct engine engine = {
    .name = "lock_free_bins",
    .largest = ENGINE_LARGEST,
    .release_always = true,
    .start = lfb_start,
    .allocate = lfb_allocate,
    .release = lfb_release,
    .manage = lfb_manage,
    .thread_exit = lfb_thread_exit,
    .fork_prepare = lfb_fork_prepare,
    .fork_parent = lfb_fork_parent,
    .fork_child = lfb_fork_child,
};
