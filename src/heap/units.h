/* SPDX-License-Identifier: MIT
 *
 * Sets of a superblock's units (superblock.h), a bit each: unions, differences and the empty set are |, & ~ and 0.
 */
#ifndef SUTLER_HEAP_UNITS_H
#define SUTLER_HEAP_UNITS_H

#include "base/bits.h"

#define UNITS_MAX 128u

typedef unsigned __int128 unit_set;

/* Units first .. first + count - 1; those beyond the last there can be are left out. */
static inline unit_set units_run(unsigned first, unsigned count)
{
    unit_set run = count >= UNITS_MAX ? ~(unit_set)0 : ((unit_set)1 << count) - 1;
    return first >= UNITS_MAX ? 0 : run << first;
}

/* The lowest; of a set that is not empty. */
static inline unsigned units_first(unit_set set)
{
    return (uint64_t)set != 0 ? low_bit((uint64_t)set) : 64 + low_bit((uint64_t)(set >> 64));
}

static inline unsigned units_count(unit_set set)
{
    return (unsigned)(__builtin_popcountll((uint64_t)set) + __builtin_popcountll((uint64_t)(set >> 64)));
}

/* The lowest units without a gap between them; of a set that is not empty. */
static inline unit_set units_low_run(unit_set set)
{
    unit_set lowest = set & -set, above = set + lowest; /* carries through the run */
    return set & ~above;
}

#endif
