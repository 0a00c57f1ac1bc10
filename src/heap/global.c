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

static struct superblock *find(unsigned c, enum look look)
{
    struct superblock *s = heap_find_fullest(&global_heap, c);
    if (s == NULL && look == look_further)
        s = heap_find_further(&global_heap, c);
    else if (s == NULL && look == look_everywhere)
        s = heap_find_any(&global_heap, c);
    return s;
}

struct superblock *global_take(unsigned c, enum look look)
{
    if (__atomic_load_n(&global_heap.class[c].listed, __ATOMIC_RELAXED) == 0 && !heap_has_mail(&global_heap))
        return NULL;
    lock_take(&global_heap.lock);
    heap_drain(&global_heap);
    struct superblock *s = find(c, look);
    if (s != NULL) {
        heap_list_remove(&global_heap, s);
        superblock_clear_owner(s);
    }
    lock_release(&global_heap.lock);
    return s;
}
