/* SPDX-License-Identifier: MIT
 *
 * LFMalloc's policy (Dice & Garthwaite 2002, section 3.2.2): a heap has one superblock of a class online.  Whatever
 * left the active slot is offline, in the global heap, and all frees of its blocks are remote.
 */
#include "policy.h"

#include "heap/heap.h"

void __real_heap_relist(struct heap *h, struct superblock *s);
void __wrap_heap_relist(struct heap *h, struct superblock *s);
void __real_heap_relist_pending(struct heap *h, struct superblock *s);
void __wrap_heap_relist_pending(struct heap *h, struct superblock *s);
void __real_heap_flush_pending(struct heap *h);
void __wrap_heap_flush_pending(struct heap *h);

/* If `s` was just listed by `h`.  If it cannot be given up now, it stays until it is relisted again. */
static void pass_on(struct heap *h, struct superblock *s)
{
    bool is_listed = s->slice.kind == slice_superblock && superblock_owner(s) == h && s->group != group_none;
    if (policy_chosen() == policy_one && !heap_is_global(h) && is_listed && heap_give_up(h, s) == rcs_done)
        global_adopt(s);
}

void __wrap_heap_relist(struct heap *h, struct superblock *s)
{
    __real_heap_relist(h, s);
    pass_on(h, s);
}

void __wrap_heap_relist_pending(struct heap *h, struct superblock *s)
{
    __real_heap_relist_pending(h, s);
    pass_on(h, s);
}

void __wrap_heap_flush_pending(struct heap *h)
{
    if (policy_chosen() != policy_one) {
        __real_heap_flush_pending(h);
        return;
    }
    struct superblock *s;
    for (int i = 0; i < FLUSH_MAX && (s = heap_pop_pending(h)) != NULL; i++)
        __wrap_heap_relist_pending(h, s);
}
