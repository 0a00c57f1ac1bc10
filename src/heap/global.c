/* SPDX-License-Identifier: MIT
 *
 * The global heap: superblocks that no slot owns.  Local heaps give it what they have too much of, and take the fullest
 * back (so that the others can run empty).  It is a heap like any other except that no section ever runs on it: all its
 * superblocks' frees are remote, and its lock makes everything exclusive.
 *
 * It is several heaps, by class: threads that refill different classes seldom meet at a lock.
 */
#include "heap/heap.h"

void global_adopt(struct superblock *s)
{
    struct heap *global = global_heap_of(s->class);
    lock_take(&global->lock);
    heap_drain(global);
    heap_settle(global, s);
    lock_release(&global->lock);
}

static struct superblock *find(struct heap *global, unsigned c, enum look look)
{
    struct superblock *s = heap_find_fullest(global, c);
    if (s == NULL && look == look_further)
        s = heap_find_further(global, c);
    else if (s == NULL && look == look_everywhere)
        s = heap_find_any(global, c);
    return s;
}

struct superblock *global_take(unsigned c, enum look look)
{
    struct heap *global = global_heap_of(c);
    if (__atomic_load_n(&global->class[c].listed, __ATOMIC_RELAXED) == 0 && !heap_has_mail(global))
        return NULL;
    lock_take(&global->lock);
    heap_drain(global);
    struct superblock *s = find(global, c, look);
    if (s != NULL) {
        heap_list_remove(global, s);
        superblock_clear_owner(s);
    }
    lock_release(&global->lock);
    return s;
}
