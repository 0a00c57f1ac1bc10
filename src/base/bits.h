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

static inline size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

static inline size_t max_size(size_t a, size_t b)
{
    return a > b ? a : b;
}

#endif
