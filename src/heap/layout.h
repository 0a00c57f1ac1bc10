/* SPDX-License-Identifier: MIT
 *
 * Numbers of the heap's layout that assembly and C share.
 */
#ifndef SUTLER_HEAP_LAYOUT_H
#define SUTLER_HEAP_LAYOUT_H

#define SLICE_SHIFT 16
#define SLICE_BYTES (1ul << SLICE_SHIFT)
#define DESCRIPTOR_SHIFT 7
#define BLOCK_ALIGNMENT 16
#define STEP_SHIFT 7 /* classes above SMALL_BYTES_MAX are multiples of this power of two */

/* A freelist head: {address of the top block << FREELIST_COUNT_BITS | count}, here 16 bits of count for 16-bit
 * instructions. */
#define FREELIST_COUNT_BITS 16

/* struct slice */
#define SLICE_TO_HEAD 0
#define SLICE_KIND 20
#define SLICE_SUPERBLOCK 1

/* struct superblock */
#define SUPERBLOCK_OWNER 24
#define SUPERBLOCK_THRESHOLD 32
#define SUPERBLOCK_BATCH 39
#define SUPERBLOCK_BASE 40
#define SUPERBLOCK_RECIPROCAL 48
#define SUPERBLOCK_FREELIST 64

/* struct heap */
#define HEAP_OUTBOX 64
#define HEAP_ACTIVE 88
#define OUTBOX_CHAINS 64 /* a power of two */

#endif
