/* SPDX-License-Identifier: MIT
 *
 * Integer helpers.  All sizes in bytes unless a name says otherwise.
 */
#ifndef SUTLER_BASE_BITS_H
#define SUTLER_BASE_BITS_H

#include "base/compiler.h"

static inline bool is_power_of_two(size_t x)
{
    return x != 0 && (x & (x - 1)) == 0;
}

static inline uintptr_t align_up(uintptr_t x, size_t alignment)
{
    return (x + alignment - 1) & ~(uintptr_t)(alignment - 1);
}

static inline uintptr_t align_down(uintptr_t x, size_t alignment)
{
    return x & ~(uintptr_t)(alignment - 1);
}

/* Index of the highest set bit; x must not be 0. */
static inline unsigned top_bit(size_t x)
{
    return 63u - (unsigned)__builtin_clzl(x);
}

/* Index of the lowest set bit; x must not be 0. */
static inline unsigned low_bit(uint64_t x)
{
    return (unsigned)__builtin_ctzll(x);
}

/* `count` ones starting at bit `first`; first + count <= 64. */
static inline uint64_t bit_run(unsigned first, unsigned count)
{
    return count >= 64 ? ~0ull : ((1ull << count) - 1) << first;
}

/* The lowest set bits of `x`, not 0, that follow each other. */
static inline uint64_t low_run(uint64_t x)
{
    unsigned first = low_bit(x);
    uint64_t above = ~(x >> first);
    return bit_run(first, above == 0 ? 64 - first : low_bit(above));
}

static inline size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

static inline size_t max_size(size_t a, size_t b)
{
    return a > b ? a : b;
}

#endif
