/* SPDX-License-Identifier: MIT
 *
 * Purge: carving in reverse.  Superblocks are taken offline a heap at a time (one fence for all of them), their free
 * lists validated and rebuilt without the blocks on wholly free pages, those pages given back, and put online again.
 * Meanwhile the program goes on: its frees to them are remote, its mallocs find other superblocks or wait for the lock.
 */
#include "heap/heap.h"
#include "heap/span.h"

/* A chain through `next` of exclusive superblocks. */
static void take_offline(struct superblock *s, uint32_t *chain)
{
    __atomic_store_n(&s->owner, NULL, __ATOMIC_RELEASE);
    s->next = *chain;
    *chain = slice_of_descriptor(s);
}

static size_t purge_offline(struct heap *h, struct superblock *s)
{
    const char *damage = NULL;
    s->next = s->prev = SLICE_NONE;
    heap_collect(h, s);
    size_t bytes = superblock_purge(s, &damage);
    span_note_purged(bytes);
    if (damage != NULL)
        superblock_quarantine(s, "purge", damage);
    else if (superblock_live(s, s->word) == 0 && remote_take(s, false) == 0)
        span_give(slice_of_descriptor(s), size_class[s->class].slices);
    else
        heap_settle(h, s);
    return bytes;
}

static size_t purge_heap(struct heap *h)
{
    uint32_t chain = SLICE_NONE;
    lock_take(&h->lock);
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        struct superblock *s = h->active[c];
        if (s != &empty_superblock) {
            __atomic_store_n(&h->active[c], &empty_superblock, __ATOMIC_RELEASE);
            take_offline(s, &chain);
        }
        for (enum group g = group_nearly_full; g < group_count; g++)
            while (h->class[c].head[g] != 0) {
                s = descriptor_of_slice(h->class[c].head[g] - 1);
                heap_list_remove(h, s);
                take_offline(s, &chain);
            }
    }
    rcs_fence();
    size_t bytes = 0;
    while (chain != SLICE_NONE) {
        struct superblock *s = descriptor_of_slice(chain);
        chain = s->next;
        bytes += purge_offline(h, s);
    }
    lock_release(&h->lock);
    return bytes;
}

size_t heap_purge_all(void)
{
    size_t bytes = purge_heap(&global_heap);
    unsigned total = atomic_load_explicit(&heap_total, memory_order_acquire);
    for (unsigned i = 0; i < total; i++)
        bytes += purge_heap(heap_list[i]);
    return bytes + span_purge();
}
