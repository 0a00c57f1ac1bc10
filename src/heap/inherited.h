/* SPDX-License-Identifier: MIT
 *
 * What a forked child has of its parent, and the superblocks it takes before it uses that.
 */
#ifndef SUTLER_HEAP_INHERITED_H
#define SUTLER_HEAP_INHERITED_H

#include <stdatomic.h>

#include "heap/demand.h"
#include "heap/heap.h"

#define OWN_MAX 8 /* superblocks of each class */

/* By class: how many fresh superblocks a child takes yet, whatever it inherited.  0 in a process that is no child. */
extern _Atomic uint8_t own_left[CLASS_COUNT];

/* True from a fork until the child's first malloc, which is to set aside what the heap was allocating from. */
extern _Atomic bool inherited_is_active;

/* By a child that has noticed that it is one.  False: it is to go on like its parent. */
bool inherited_begin(void);

/* Takes the active superblocks of `h`, the caller's heap, out of use and lists them.  Lock held. */
void inherited_set_aside(struct heap *h);

static inline unsigned inherited_own_left(unsigned c)
{
    return atomic_load_explicit(&own_left[c], memory_order_relaxed);
}

/* True if class `c` is to have a fresh superblock, whatever there is. */
static inline bool inherited_is_shunned(unsigned c)
{
    return unlikely(inherited_own_left(c) != 0) && !atomic_load_explicit(&memory_is_short, memory_order_relaxed);
}

/* It has one more of its own.  Threads on several heaps may count one together, but never beyond the last. */
static inline void inherited_note_own(unsigned c)
{
    unsigned left = inherited_own_left(c);
    if (left != 0)
        atomic_store_explicit(&own_left[c], (uint8_t)(left - 1), memory_order_relaxed);
}

/* So many blocks of one superblock were freed that the pages there are the child's own by now.  (It may be lost on a
 * thread that is just taking a fresh one; then there are some more, as many as without it at most.) */
static inline void inherited_note_freed(unsigned c)
{
    if (unlikely(inherited_own_left(c) != 0))
        atomic_store_explicit(&own_left[c], 0, memory_order_relaxed);
}

#endif
