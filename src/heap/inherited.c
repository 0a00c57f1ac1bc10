/* SPDX-License-Identifier: MIT
 *
 * Parent and child share each page until one of them writes to it, which costs a copy.  In a heap that has run for a
 * while free blocks lie one or two to a page, and a child that takes them copies a page for each of its mallocs, while
 * fresh memory is cleared once for all the blocks of a page.  So the first malloc of a child sets aside what its heap
 * was allocating from, and refill.c begins each class with fresh superblocks, short as those of a new heap are.
 *
 * With a class that ends when the child has OWN_MAX of them, or when it has freed so many blocks of one superblock that
 * this is to be relisted: what is free there lies on pages that are the child's own.  From then on it uses what it
 * inherited.  So a child that lives on has at most OWN_MAX superblocks of a class too many.  A program that goes on in
 * its child, and in the child of that, would add them up; it is left alone after GENERATIONS_MAX.
 */
#include "heap/inherited.h"

#define GENERATIONS_MAX 8

_Atomic uint8_t own_left[CLASS_COUNT];
_Atomic bool inherited_is_active;
static uint8_t generation; /* of the first process: 0 */

bool inherited_begin(void)
{
    const bool is_shunned = generation < GENERATIONS_MAX;
    generation += is_shunned;
    for (unsigned c = 0; c < CLASS_COUNT; c++)
        atomic_store_explicit(&own_left[c], is_shunned ? OWN_MAX : 0, memory_order_relaxed);
    atomic_store(&inherited_is_active, is_shunned);
    return is_shunned;
}

void inherited_set_aside(struct heap *h)
{
    ASSERT(lock_is_mine(&h->lock));
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        struct superblock *s = h->active[c];
        if (s != &empty_superblock && heap_give_up(h, s) == rcs_done)
            heap_relist(h, s);
    }
}
