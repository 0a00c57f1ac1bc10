/* SPDX-License-Identifier: MIT
 *
 * Outboxes: small blocks that threads of one heap free for another are collected, and sent to their superblocks many at
 * a time (snmalloc's BatchIt does so per slab).  A free to the outbox is a section like one at home, and costs as much:
 * no atomic instruction, and no line that another cpu is writing.
 *
 * A heap has OUTBOX_CHAINS chains, each of blocks of one slice, whose number picks it; a chain is linked as x_remote
 * is, from an empty list.  The section that makes it as long as the superblock's `batch`, or puts a block of another
 * slice in its place, takes the chain with the same store, and whoever ran it delivers the chain.  The others are sent
 * when the heap's slow path comes by, and by passes: malloc_trim, memory that is short, and the manager's clock, where
 * nothing has been added for a period.
 *
 * Bound: OUTBOX_CHAINS x BATCH_BYTES a heap wait, and keep as many superblocks from becoming empty.
 *
 * Who may write a chain: sections of the heap that add a block (hot_send), or, under the heap's lock, only take the
 * chain.  Whoever set `outbox` to NULL has the chains to itself once a fence has passed; frees go straight to their
 * superblocks meanwhile.  Where the fence is refused, a chain of a heap that nobody runs on could not be sent: there is
 * no outbox.
 */
#ifndef SUTLER_HEAP_OUTBOX_H
#define SUTLER_HEAP_OUTBOX_H

#include "heap/heap.h"

/* Of a heap that was just made; or in a child, where whoever had closed it is not here. */
static inline void outbox_start(struct heap *h)
{
    h->outbox = sync_mode == sync_rcs && rcs_keeps_fence() ? h->chain : NULL;
}

/* Sends a chain that was taken out of an outbox to its superblock; returns the superblock's owner, or NULL.  No lock
 * needed; async-signal-safe. */
struct heap *outbox_deliver(uint64_t chain);

/* Takes chain number `i` out of the outbox of `h`, the heap the caller runs on.  Lock held.  0 if there is none, or the
 * caller was moved. */
uint64_t outbox_take(struct heap *h, unsigned i);

/* Sends everything the outbox of `h`, the heap the caller runs on, has.  Lock held. */
void outbox_send(struct heap *h);

/* The same for all heaps, or for those to which nothing was added since the last time; *changed is set if others have
 * something.  In a pass, with no lock held. */
void outboxes_send(bool all, bool *changed);
/* The same for the heaps from `first` to before `end` of the list. */
void outboxes_send_of(unsigned first, unsigned end, bool all, bool *changed);

/* In a child. */
void outboxes_recover(void);

#endif
