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

/* struct slice */
#define SLICE_FIRST 0
#define SLICE_KIND 12
#define SLICE_SUPERBLOCK 1
#define SLICE_TAIL 2

/* struct superblock */
#define SUPERBLOCK_OWNER 16
#define SUPERBLOCK_NOTIFY_AT 24
#define SUPERBLOCK_BLOCKS 26
#define SUPERBLOCK_RECIPROCAL 28
#define SUPERBLOCK_BLOCK_BYTES 52
#define SUPERBLOCK_BATCH 62
#define SUPERBLOCK_WORD 64
#define OWNER_LONG 1 /* in `owner`: the superblock has several slices */

/* struct heap */
#define HEAP_OUTBOX 192
#define HEAP_ACTIVE 216
#define OUTBOX_CHAINS 16 /* a power of two */

#endif
