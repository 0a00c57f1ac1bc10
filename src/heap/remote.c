/* SPDX-License-Identifier: MIT */
#include "heap/remote.h"

uint64_t superblock_join(const struct superblock *s, uint64_t chain, uint64_t list)
{
    size_t bytes = (size_t)s->blocks * s->block_bytes;
    unsigned base = freelist_count(list), total = freelist_count(chain) + base;
    char *block = freelist_top(chain), *last = NULL;
    if (total > s->blocks)
        return 0;
    /* Next pointers are set, not adjusted, so that a join whose commit failed can be done again on another list, or
     * undone by joining to an empty one. */
    for (unsigned count = total; count > base; count--) {
        if ((uintptr_t)block - s->base >= bytes)
            return 0;
        last = block;
        block = freelist_top(next_get(last));
        next_set(last, freelist_pack(block, count - 1));
    }
    if (last != NULL)
        next_set(last, list);
    return freelist_pack(freelist_top(chain), total);
}

enum remote_pushed remote_push(struct superblock *s, void *block)
{
    uint64_t old = atomic_load_explicit(&s->x_remote, memory_order_relaxed), new;
    do {
        if (unlikely(freelist_top(old) == block))
            return remote_double;
        next_set(block, old & ~(uint64_t)REMOTE_ARMED);
        new = freelist_pack(block, freelist_count(old) + 1);
    } while (!atomic_compare_exchange_weak_explicit(&s->x_remote, &old, new, memory_order_seq_cst,
                                                    memory_order_relaxed));
    return (old & REMOTE_ARMED) != 0 ? remote_pushed_armed : remote_pushed;
}

enum remote_pushed remote_push_chain(struct superblock *s, uint64_t chain)
{
    uint64_t old = atomic_load_explicit(&s->x_remote, memory_order_relaxed), list = old & ~(uint64_t)REMOTE_ARMED;
    uint64_t joined = list == 0 ? chain : superblock_join(s, chain, list);
    while (joined != 0 && !atomic_compare_exchange_strong(&s->x_remote, &old, joined))
        joined = superblock_join(s, chain, old & ~(uint64_t)REMOTE_ARMED);
    if (joined == 0)
        return remote_damaged;
    return (old & REMOTE_ARMED) != 0 ? remote_pushed_armed : remote_pushed;
}

uint64_t remote_take(struct superblock *s, bool armed)
{
    uint64_t taken = atomic_exchange_explicit(&s->x_remote, armed ? REMOTE_ARMED : 0, memory_order_seq_cst);
    return taken & ~(uint64_t)REMOTE_ARMED;
}

void remote_return(struct superblock *s, uint64_t chain)
{
    if (chain == 0)
        return; /* it was damaged, and is dropped */
    uint64_t there = 0;
    while (!atomic_compare_exchange_strong(&s->x_remote, &there, chain)) {
        /* Others have pushed since, or it was armed: put what is there below ours. */
        uint64_t joined = superblock_join(s, chain, remote_take(s, false));
        if (joined != 0)
            chain = joined;
        there = 0;
    }
}
