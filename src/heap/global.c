/* SPDX-License-Identifier: MIT
 *
 * The global heap: superblocks that no slot owns.  Local heaps give it what they have too much of, and take the fullest
 * back (so that the others can run empty).  It is a heap like any other except that no section ever runs on it: all its
 * superblocks' frees are remote, and its lock makes everything exclusive.
 */
#include "heap/heap.h"

void global_adopt(struct superblock *s)
{
    lock_take(&global_heap.lock);
    heap_drain(&global_heap);
    heap_settle(&global_heap, s);
    lock_release(&global_heap.lock);
}

struct superblock *global_take(unsigned c, bool or_holes)
{
    if (__atomic_load_n(&global_heap.class[c].listed, __ATOMIC_RELAXED) == 0 &&
        atomic_load_explicit(&global_heap.x_mailbox, memory_order_relaxed) == 0)
        return NULL;
    lock_take(&global_heap.lock);
    heap_drain(&global_heap);
    struct superblock *s = heap_take_fullest(&global_heap, c, or_holes);
    if (s != NULL)
        superblock_clear_owner(s);
    lock_release(&global_heap.lock);
    return s;
}
