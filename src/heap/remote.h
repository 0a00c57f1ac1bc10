/* SPDX-License-Identifier: MIT
 *
 * The remote list of a superblock: blocks of it that threads of other heaps have freed, one by one or by chains.
 * Pushed to by compare-and-swap, taken as a whole; safe from any thread, no lock held.  (LFMalloc section 3.2.2.)
 */
#ifndef SUTLER_HEAP_REMOTE_H
#define SUTLER_HEAP_REMOTE_H

#include "heap/superblock.h"

/* Prepends the blocks of `chain` to `list`; the next pointers are rewritten, so a join can be repeated with another
 * list.  Returns the new list, or 0 if the chain is damaged. */
uint64_t superblock_join(const struct superblock *s, uint64_t chain, uint64_t list);

/* Adds a block to x_remote. */
enum remote_pushed {
    remote_pushed,
    remote_pushed_armed, /* that consumed ARMED: the caller must push the superblock onto the pending stack of whoever
                          * is its owner after that */
    remote_double,       /* it is the top block already; nothing was done */
    remote_damaged,      /* somebody wrote to a block of the chain; nothing was done */
};
enum remote_pushed remote_push(struct superblock *s, void *block);
/* Adds a chain, linked from an empty list. */
enum remote_pushed remote_push_chain(struct superblock *s, uint64_t chain);
/* Takes all of x_remote and leaves it empty, armed or not. */
uint64_t remote_take(struct superblock *s, bool armed);
/* Puts a taken chain back, unarmed: the caller pushes the superblock onto a pending stack. */
void remote_return(struct superblock *s, uint64_t chain);

#endif
