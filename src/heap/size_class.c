/* SPDX-License-Identifier: MIT */
#include "heap/size_class.h"

/* With R = ceil(2^32 / bytes) and e = bytes * R - 2^32, the start of block i gives i * e mod 2^32, and anything
 * between two starts R or more: so "below R" means "a start".  Where a superblock ends in less than a block, an R
 * somewhat larger (and with it e) makes the number of blocks the first i that gives R or more, so that the end of
 * the last block is no start.  The price is that the very last byte of the last block gives less; callers ask for
 * aligned addresses only. */
#define BLOCKS(b, s) ((s) * SLICE_BYTES / (b))
#define CEILING(x, y) (((x) + (y) - 1) / (y))
#define RECIPROCAL(b, s)                                                                                               \
    ((s) == 1 && BLOCKS(b, s) * (b) < SLICE_BYTES ? CEILING(BLOCKS(b, s) << 32, BLOCKS(b, s) * (b) - 1)                \
                                                  : CEILING(1ul << 32, b))

const struct size_class size_class[CLASS_COUNT] = {
#define SIZE_CLASS(b, s)                                                                                               \
    {.bytes = (b),                                                                                                     \
     .reciprocal = (uint32_t)RECIPROCAL(b, s),                                                                         \
     .slices = (s),                                                                                                    \
     .blocks = (uint16_t)BLOCKS(b, s)},
#include "heap/size_classes.def"
#undef SIZE_CLASS
};

uint8_t size_class_of_small[SMALL_BYTES_MAX + 1];
uint8_t size_class_of_medium[(CLASS_BYTES_MAX >> STEP_SHIFT) + 1];

void size_class_start(void)
{
    for (size_t size = 0; size <= SMALL_BYTES_MAX; size++)
        size_class_of_small[size] = (uint8_t)size_class_of(size);
    for (size_t step = 0; step <= CLASS_BYTES_MAX >> STEP_SHIFT; step++)
        size_class_of_medium[step] = (uint8_t)size_class_of(step << STEP_SHIFT);
}
