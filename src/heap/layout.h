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

/* struct superblock */
#define SUPERBLOCK_OWNER 0
#define SUPERBLOCK_NOTIFY_AT 8
#define SUPERBLOCK_BLOCKS 10
#define SUPERBLOCK_RECIPROCAL 12
#define SUPERBLOCK_NEXT 32
#define SUPERBLOCK_BLOCK_BYTES 44
#define SUPERBLOCK_KIND 52
#define SUPERBLOCK_BATCH 56
#define SUPERBLOCK_WORD 64
#define SLICE_SUPERBLOCK 1
#define SLICE_TAIL 2
#define OWNER_LONG 1 /* in `owner`: the superblock has several slices */

/* struct heap */
#define HEAP_OUTBOX 192
#define HEAP_ACTIVE 216
#define OUTBOX_CHAINS 16 /* a power of two */

#endif
