/* SPDX-License-Identifier: MIT
 *
 * Size classes: the sizes blocks come in.  The table is size_classes.def; this file turns a request into its class.
 */
#ifndef SUTLER_HEAP_SIZE_CLASS_H
#define SUTLER_HEAP_SIZE_CLASS_H

#include "base/bits.h"
#include "heap/layout.h"

#define CLASS_COUNT 88
#define CLASS_BYTES_MAX ((size_t)128 << 10) /* the largest block of a superblock; above it blocks are spans */
/* malloc's fast path finds the class in a byte table: of every size up to SMALL_BYTES_MAX, above it of every step. */
#define SMALL_BYTES_MAX 1024

struct size_class {
    uint64_t reciprocal; /* 2^64 / bytes, rounded up: (offset * reciprocal) mod 2^64 < reciprocal iff `offset` is a
                          * multiple of `bytes`, and offset * reciprocal / 2^64 is which (Lemire, Kaser and Kurz,
                          * "Faster remainder by direct computation", 2019); for any offset below 2^32 */
    uint32_t bytes;
    uint16_t slices;
    uint16_t blocks;
};

extern const struct size_class size_class[CLASS_COUNT];

/* Filled by size_class_start: the class of each size up to SMALL_BYTES_MAX, and of each step.  Any size has a step,
 * small ones and 0 too: a thread may find the one table closed and the other open, while the fast paths are opened. */
extern uint8_t size_class_of_small[SMALL_BYTES_MAX + 1];
extern uint8_t size_class_of_medium[(CLASS_BYTES_MAX >> STEP_SHIFT) + 1];
static inline size_t size_class_step(size_t size)
{
    return (size + (1u << STEP_SHIFT) - 1) >> STEP_SHIFT;
}
void size_class_start(void);

/* Smallest class that holds `size` bytes; size <= CLASS_BYTES_MAX.  0 bytes get the smallest class. */
static inline unsigned size_class_of(size_t size)
{
    if (size <= 128)
        return size == 0 ? 0 : (unsigned)((size - 1) >> 4);
    unsigned e = top_bit(size - 1);
    return 8 + (e - 7) * 8 + ((unsigned)((size - 1) >> (e - 3)) & 7);
}

/* Whether there is a class for `size` bytes at a multiple of `alignment`, a power of two: the largest is one of whole
 * slices. */
static inline bool size_class_exists(size_t size, size_t alignment)
{
    return size <= CLASS_BYTES_MAX && alignment <= SLICE_BYTES;
}
_Static_assert(CLASS_BYTES_MAX % SLICE_BYTES == 0, "what is rounded up to an alignment has a class as well");

/* Then it is a request of so many bytes: superblocks start on slice boundaries, so blocks are aligned as their size is,
 * and steps between classes are powers of two.  If the step there is the alignment or more, it divides the class's
 * size; if it is less, the class has exactly so many bytes. */
static inline size_t size_of_aligned(size_t size, size_t alignment)
{
    return align_up(max_size(size, 1), alignment);
}

/* The smallest class with such blocks, or CLASS_COUNT. */
static inline unsigned size_class_of_aligned(size_t size, size_t alignment)
{
    return size_class_exists(size, alignment) ? size_class_of(size_of_aligned(size, alignment)) : CLASS_COUNT;
}

/* What the addresses of the class's blocks are multiples of. */
static inline size_t size_class_alignment(unsigned c)
{
    const size_t bytes = size_class[c].bytes;
    return min_size(bytes & -bytes, SLICE_BYTES);
}

#endif
