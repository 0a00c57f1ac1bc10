/* SPDX-License-Identifier: MIT
 *
 * Lending: where no address space is left, or most of a heap is in superblocks that few blocks keep (regain.c), slices
 * of a superblock that hold no block of it become free spans, whatever lies on both sides of them.  Else a superblock
 * of 4 MiB would keep all of it for one block.  The first slice stays, for its descriptor is the superblock's.
 *
 * What was lent never comes back.  It is not written down: a slice is the superblock's as long as its descriptor says
 * so (superblock_has_slice); has_lent tells to look.  Blocks that touch a lent slice do not exist, nor will they.
 */
#ifndef SUTLER_HEAP_LEND_H
#define SUTLER_HEAP_LEND_H

#include "heap/superblock.h"

/* Lends what a detached superblock can spare; returns how many slices. */
size_t superblock_lend(struct superblock *s);

/* Makes all slices that a detached superblock still has free spans. */
void superblock_give(struct superblock *s);

#endif
