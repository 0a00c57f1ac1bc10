/* SPDX-License-Identifier: MIT
 *
 * Why: what the two halves of the lock-free bins share: lock_free_bins.c is what the program's threads do (request
 * processing), lock_free_manager.c what the manager does (system processing).
 *
 * A heap is a set of bins with a manager.  There is one heap; or (SUTLER_ENGINE_MANAGERS, thesis chapter 10) several,
 * each thread has one of them, and its blocks go to and come from that.
 *
 * Who writes what in a bin:
 *   first, pops      one 16-byte word: taken from by compare-and-swap of both, put to by compare-and-swap of `first` alone
 *   reserved, added  atomic counters; available = added - reserved
 *   size             atomic
 *   filled           the manager
 *   the rest         the heap's manager, or a forking thread while it has the managers paused
 */
#ifndef ENGINES_LOCK_FREE_BINS_H
#define ENGINES_LOCK_FREE_BINS_H

#include "bins.h"
#include "manager.h" /* MANAGERS_MOST */

#define LFB_SHIFTED (2 * POWER_BINS) /* 2 k: 16 << k; 2 k + 1: 24 << k, used with the option `three` */
#define LFB_FINE    32u              /* with the option `small`, after those: every 16 bytes up to 512 */
#define LFB_BINS    (LFB_SHIFTED + LFB_FINE)

struct bin {
    _Alignas(64) struct block *first;
    uint64_t pops;
    uint64_t reserved;
    uint64_t added;
    uint32_t size;
    uint32_t filled;  /* refills so far: what a miss waits on */
    uint32_t failed;  /* refills for which the backend had no memory */
    uint32_t waiters;
    _Alignas(64) struct block *last; /* the bin's lowest block, reserved by the manager for good; NULL: no refill yet */
    struct block *recycled;          /* came back through the free list, not yet in a bin or given to the backend */
    uint32_t misses, calm_passes;    /* for the option `shrink` */
    uint32_t expected;               /* for `foresee`: blocks that the next period is expected to take */
    uint64_t drawn;                  /* reservations that were not the program's */
};

struct heap {
    struct bin bins[LFB_BINS];
    struct block *free_list;
    _Alignas(64) uint64_t missed; /* a bit for each bin that somebody waits on */
    uint32_t refresh_wanted;      /* refill the bins; the manager polls these three */
    uint32_t free_wanted;         /* give freed blocks to the backend */
    _Alignas(64) uint32_t mallocs, frees; /* since the last refresh */
};

/* SUTLER_LFB=three,small,... (lock_free_bins.c) */
struct lfb_options {
    bool three, small, shrink, fifo, ordered, buffers, bulk, emptiest, prefetch, foresee;
};

extern struct heap lfb_heaps[MANAGERS_MOST]; /* `manager_count` of them are used */
extern struct lfb_options lfb_options;
extern __thread struct heap *lfb_mine __attribute__((tls_model("initial-exec"))); /* NULL: none chosen yet */

static inline size_t lfb_block_bytes(unsigned index)
{
    if (index >= LFB_SHIFTED)
        return (size_t)16 * (index - LFB_SHIFTED + 1);
    return (index % 2 == 0 ? (size_t)16 : (size_t)24) << index / 2;
}

static inline int64_t bin_available(const struct bin *bin)
{
    return (int64_t)(LOAD(&bin->added) - LOAD(&bin->reserved));
}

/* No thread is between its reservation and its pop.  `pops` first: pops never pass reservations, so if the later view
 * of `reserved` still equals the earlier one of `pops`, both were equal at that later instant. */
static inline bool bin_is_quiet(const struct bin *bin)
{
    uint64_t pops = __atomic_load_n(&bin->pops, __ATOMIC_SEQ_CST);
    return __atomic_load_n(&bin->reserved, __ATOMIC_SEQ_CST) == pops;
}

uint32_t bin_reserve(struct bin *bin, uint32_t wanted); /* how many it got, 0 .. wanted */
struct block *bin_pop(struct bin *bin, uint32_t count); /* that many reserved blocks, linked; the last one's link is stale */
void bin_push(struct bin *bin, struct block *first, struct block *last, uint32_t count);

unsigned lfb_bin_for_block(const void *block, size_t usable); /* the greatest bin it can serve; LFB_BINS: none */

/* `foresee` (lock_free_foresee.c), by the manager. */
void foresee(unsigned heap);
void foresee_forget(unsigned heap); /* the bins' counts begin anew */

void lfb_manage(void);
void lfb_fork_prepare(void);
void lfb_fork_parent(void);
void lfb_fork_child(void);

#endif
