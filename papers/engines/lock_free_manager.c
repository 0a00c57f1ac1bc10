/* SPDX-License-Identifier: MIT
 *
 * Why: the manager's half of the lock-free bins (thesis 6.3, figure 6.15): refilling bins behind their last block, from
 * the free list first and from the backend after, the bins that somebody waits on before all others; and giving freed
 * blocks to the backend.
 *
 * fork: other threads may be anywhere in their pops and pushes, and the pages of one snapshot are not copied at one
 * instant: a bin's head may be from before a pop and the block's link from after it.  So prepare takes every block out
 * of the bins, as a popping thread would, into chains that only it can touch; the parent puts them back.  The child
 * starts each bin anew with its lowest block, which only the paused manager writes, and puts its own copy of the chain
 * back.  Lost in the child are blocks that other threads freed between prepare and fork, and those in the buffers of
 * threads it does not have.
 */
#include "lock_free_bins.h"
#include "backend.h"
#include "manager.h"

#define CALM_PASSES 16u /* refreshes without a miss before a bin shrinks by an eighth */
#define POP_BATCH   64u

static struct saved {
    struct block *first, *last;
    uint32_t count;
} saved[MANAGERS_MOST][LFB_BINS]; /* by a forking thread */

static __thread struct heap *heap __attribute__((tls_model("initial-exec"))); /* the manager's */

static void bin_tell(struct bin *bin)
{
    STORE(&bin->filled, bin->filled + 1);
    manager_answer(&bin->filled, &bin->waiters);
}

/* The free list's blocks, sorted into what they can serve. */
static void collect_free_list(struct heap *from)
{
    struct block *block = __atomic_exchange_n(&from->free_list, NULL, __ATOMIC_SEQ_CST);
    while (block != NULL) {
        struct block *next = block->next;
        struct bin *bin = &from->bins[lfb_bin_for_block(block, backend.usable(block))];
        STORE_RELAXED(&block->next, bin->recycled);
        bin->recycled = block;
        block = next;
    }
}

/* thesis 6.3: from the free list if there is one, "only to be freed to the system and at once allocated again"
 * otherwise. */
static struct block *block_for(struct bin *bin)
{
    struct block *block = bin->recycled;
    if (block == NULL)
        return backend.malloc(lfb_block_bytes((unsigned)(bin - heap->bins)));
    bin->recycled = block->next;
    return block;
}

/* Behind the last block, which nobody can pop; the new last one is not counted in its place. */
static void bin_append(struct bin *bin, struct block *first, struct block *last, uint32_t count)
{
    STORE_RELAXED(&last->next, NULL);
    if (bin->last == NULL) {
        __atomic_store_n(&bin->first, first, __ATOMIC_SEQ_CST); /* from here on others may push */
        count--;
    } else {
        STORE(&bin->last->next, first);
    }
    bin->last = last;
    __atomic_fetch_add(&bin->added, count, __ATOMIC_SEQ_CST);
}

/* One block at once for whoever waits; the rest of the refill follows.  (app. E: a missed bin is served between any two
 * steps of other work.) */
static void serve_miss(unsigned index)
{
    struct bin *bin = &heap->bins[index];
    bin->misses++;
    if (bin_available(bin) <= 0) {
        struct block *lowest = bin->last == NULL ? block_for(bin) : NULL;
        struct block *block = block_for(bin);
        if (block == NULL || (bin->last == NULL && lowest == NULL)) {
            struct block *unused = block != NULL ? block : lowest;
            if (unused != NULL) {
                unused->next = bin->recycled;
                bin->recycled = unused;
            }
            STORE(&bin->failed, bin->failed + 1);
        } else {
            if (lowest != NULL)
                bin_append(bin, lowest, lowest, 1);
            bin_push(bin, block, block, 1);
        }
    }
    bin_tell(bin);
}

static uint64_t serve_misses(void)
{
    uint64_t all = 0;
    uint64_t missed;
    while (UNLIKELY(LOAD(&heap->missed) != 0) &&
           (missed = __atomic_exchange_n(&heap->missed, 0, __ATOMIC_SEQ_CST)) != 0) {
        all |= missed;
        for (; missed != 0; missed &= missed - 1)
            serve_miss((unsigned)__builtin_ctzl(missed));
    }
    return all;
}

/* Two lists in order of address become one.  A thread that is too late for its pop may still read a link. */
static struct block *merged(struct block *a, struct block *b)
{
    struct block *first = NULL, **end = &first;
    while (a != NULL && b != NULL) {
        struct block **lower = (uintptr_t)a < (uintptr_t)b ? &a : &b;
        STORE_RELAXED(end, *lower);
        end = &(*lower)->next;
        *lower = *end;
    }
    STORE_RELAXED(end, a != NULL ? a : b);
    return first;
}

/* chapter 10: in order of address.  sorted[i] holds 2^i blocks, or none: a merge sort from below. */
static struct block *in_order(struct block *first, struct block **last)
{
    struct block *sorted[32] = {NULL};
    for (struct block *block = first, *next; block != NULL; block = next) {
        next = block != *last ? block->next : NULL;
        STORE_RELAXED(&block->next, NULL);
        unsigned i = 0;
        for (; sorted[i] != NULL; i++) {
            block = merged(sorted[i], block);
            sorted[i] = NULL;
        }
        sorted[i] = block;
    }
    struct block *all = NULL;
    for (unsigned i = 0; i < 32; i++)
        all = merged(sorted[i], all);
    for (*last = all; (*last)->next != NULL; *last = (*last)->next)
        ;
    return all;
}

/* thesis 6.2, 6.3: a bin under half of its size is filled to half; with `foresee` to what is expected to be taken. */
static void refill(unsigned index)
{
    struct bin *bin = &heap->bins[index];
    int64_t available = bin_available(bin);
    int64_t wanted = (int64_t)(LOAD_RELAXED(&bin->size) + 1) / 2;
    if (wanted < (int64_t)bin->expected)
        wanted = (int64_t)bin->expected;
    int64_t missing = wanted - (available > 0 ? available : 0);
    if (missing <= 0)
        return;
    struct block *first = NULL, *last = NULL;
    uint32_t count = 0;
    for (int64_t i = bin->last == NULL ? -1 : 0; i < missing; i++) {
        struct block *block = block_for(bin);
        if (block == NULL)
            break;
        if (last != NULL)
            STORE_RELAXED(&last->next, block);
        else
            first = block;
        last = block;
        count++;
        serve_misses();
    }
    if (count > 0 && lfb_options.ordered)
        first = in_order(first, &last);
    if (count > 0)
        bin_append(bin, first, last, count);
    bin_tell(bin);
}

/* chapter 10: a bin that no request missed for some time gives an eighth of its size back. */
static void shrink(unsigned index)
{
    struct bin *bin = &heap->bins[index];
    bin->calm_passes = bin->misses == 0 ? bin->calm_passes + 1 : 0;
    bin->misses = 0;
    uint32_t size = LOAD_RELAXED(&bin->size);
    if (bin->calm_passes < CALM_PASSES || size == 0)
        return;
    bin->calm_passes = 0;
    __atomic_fetch_sub(&bin->size, size / 8 + 1, __ATOMIC_RELAXED);
    size -= size / 8 + 1;
    for (int64_t excess = bin_available(bin) - size; excess > 0; excess--) {
        if (bin_reserve(bin, 1) == 0)
            break;
        bin->drawn++;
        struct block *block = bin_pop(bin, 1);
        STORE_RELAXED(&block->next, bin->recycled);
        bin->recycled = block;
    }
}

/* False: it does not come to rest while we look. */
static bool wait_for_quiet(const struct bin *bin)
{
    for (unsigned turn = 0; !bin_is_quiet(bin);) {
        if (turn > engine_spins + 10)
            return false;
        serve_misses();
        engine_relax(&turn);
    }
    return true;
}

/* Gives back what no bin needs.  If this bin, of any heap, does not come to rest, we keep its blocks for the next
 * time. */
static void retire(unsigned index)
{
    struct bin *bin = &heap->bins[index];
    if (bin->recycled == NULL)
        return;
    for (unsigned i = 0; i < manager_count; i++) {
        if (!wait_for_quiet(&lfb_heaps[i].bins[index])) /* 2. in lock_free_bins.c */
            return;
    }
    struct block *block = bin->recycled;
    bin->recycled = NULL;
    while (block != NULL) {
        struct block *next = block->next;
        backend.free(block);
        block = next;
        serve_misses();
    }
}

/* app. E, `emptiest`: bins that are less than an eighth full before those less than a quarter, and these before the
 * rest. */
static void refill_emptiest(void)
{
    for (uint32_t part = 8; part > 2; part /= 2) {
        for (unsigned i = 0; i < LFB_BINS; i++) {
            if (bin_available(&heap->bins[i]) < (int64_t)(LOAD_RELAXED(&heap->bins[i].size) + 1) / part)
                refill(i);
            manager_checkpoint();
        }
    }
}

static void refill_all(void)
{
    collect_free_list(heap);
    if (lfb_options.foresee)
        foresee(manager_number());
    if (lfb_options.emptiest)
        refill_emptiest();
    for (unsigned i = 0; i < LFB_BINS; i++) {
        if (lfb_options.shrink)
            shrink(i);
        refill(i);
        manager_checkpoint();
    }
}

static void retire_all(void)
{
    collect_free_list(heap);
    for (unsigned i = 0; i < LFB_BINS; i++) {
        refill(i);
        retire(i);
        manager_checkpoint();
    }
}

static bool anything_wanted(void)
{
    return LOAD(&heap->missed) != 0 || LOAD(&heap->refresh_wanted) != 0 || LOAD(&heap->free_wanted) != 0;
}

static bool take_wish(uint32_t *wish)
{
    if (LOAD(wish) == 0)
        return false;
    STORE(wish, 0);
    FENCE(); /* a wish from here on is seen next time; what made this one is seen now */
    return true;
}

void lfb_manage(void)
{
    heap = lfb_mine = &lfb_heaps[manager_number()];
    manager_begin();
    for (;;) {
        manager_checkpoint();
        uint64_t missed = serve_misses();
        if (missed != 0) {
            for (; missed != 0; missed &= missed - 1)
                refill((unsigned)__builtin_ctzl(missed));
        } else if (take_wish(&heap->refresh_wanted)) {
            refill_all();
        } else if (take_wish(&heap->free_wanted)) {
            retire_all();
        } else if (!manager_sleep(anything_wanted)) {
            break;
        }
    }
    manager_end();
}

/* ---------------------------------------------------------------------------------------------------------------
 * fork */

static void save(struct bin *bin, struct saved *to)
{
    int64_t limit = bin_available(bin); /* others may free faster than we take */
    uint32_t got;
    *to = (struct saved){0};
    while (to->count < limit && (got = bin_reserve(bin, POP_BATCH)) > 0) {
        struct block *first = bin_pop(bin, got);
        struct block *last = first;
        for (uint32_t i = 1; i < got; i++)
            last = last->next;
        STORE_RELAXED(&last->next, to->first);
        if (to->last == NULL)
            to->last = last;
        to->first = first;
        to->count += got;
    }
    bin->drawn += to->count;
}

static void put_back(struct bin *bin, const struct saved *from)
{
    if (from->count > 0)
        bin_push(bin, from->first, from->last, from->count);
}

void lfb_fork_prepare(void)
{
    manager_pause();
    for (unsigned h = 0; h < manager_count; h++) {
        collect_free_list(&lfb_heaps[h]);
        for (unsigned i = 0; i < LFB_BINS; i++)
            save(&lfb_heaps[h].bins[i], &saved[h][i]);
    }
}

void lfb_fork_parent(void)
{
    for (unsigned h = 0; h < manager_count; h++) {
        for (unsigned i = 0; i < LFB_BINS; i++)
            put_back(&lfb_heaps[h].bins[i], &saved[h][i]);
    }
    manager_resume();
}

static void bin_fork_child(struct bin *bin)
{
    bin->first = bin->last;
    if (bin->last != NULL)
        bin->last->next = NULL;
    bin->pops = bin->reserved = bin->added = bin->drawn = 0;
    bin->waiters = 0;
}

void lfb_fork_child(void)
{
    for (unsigned h = 0; h < manager_count; h++) {
        lfb_heaps[h].free_list = NULL;
        lfb_heaps[h].missed = 0;
        for (unsigned i = 0; i < LFB_BINS; i++) {
            bin_fork_child(&lfb_heaps[h].bins[i]);
            put_back(&lfb_heaps[h].bins[i], &saved[h][i]);
        }
        foresee_forget(h);
    }
}
