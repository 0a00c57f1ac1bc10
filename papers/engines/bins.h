/* SPDX-License-Identifier: MIT
 *
 * Why: the arithmetic that locked and lock-free bins share (thesis 6.2): which bin serves a request, and which bin a
 * freed block belongs to.  The second rounds down: a block of n usable bytes serves any bin of at most n, whoever asked
 * for it.
 */
#ifndef ENGINES_BINS_H
#define ENGINES_BINS_H

#include "engine.h" /* ENGINE_LARGEST */

#define BIN_SMALLEST_SHIFT 4u /* 16 bytes: a link, and what malloc is aligned to */
#define BIN_LARGEST_SHIFT  15u
#define POWER_BINS         (BIN_LARGEST_SHIFT - BIN_SMALLEST_SHIFT + 1)

/* The thesis's bounds and periods (6.2 and app. E). */
#define BIN_SIZE_MOST        10000u
#define MALLOCS_PER_REFRESH  1000u
#define FREES_PER_REFRESH    100u
/* Ours: the thesis lets a bin of large blocks grow as long as one of small ones. */
#define BIN_BYTES_MOST ((size_t)16 << 20)

_Static_assert(((size_t)1 << BIN_LARGEST_SHIFT) == ENGINE_LARGEST, "bins serve all that reaches an engine");

/* A free block's first bytes link it to the next (thesis 6.2). */
struct block {
    struct block *next;
};

static inline unsigned floor_log2(size_t x)
{
    return 63u - (unsigned)__builtin_clzl(x);
}

/* Smallest power-of-two bin whose blocks hold `size` bytes. */
static inline unsigned bin_for_request(size_t size)
{
    return size <= (size_t)1 << BIN_SMALLEST_SHIFT ? 0 : floor_log2(size - 1) + 1 - BIN_SMALLEST_SHIFT;
}

static inline unsigned bin_size_most(size_t block_bytes)
{
    size_t by_bytes = BIN_BYTES_MOST / block_bytes;
    return (unsigned)(by_bytes < BIN_SIZE_MOST ? by_bytes : BIN_SIZE_MOST);
}

/* One more call since the last refresh; true when it is time for one.  Not atomic on purpose, as in the thesis: a call
 * lost between two threads makes a refresh late by one, an atomic counter would make every call dearer. */
static inline bool refresh_due(uint32_t *calls, uint32_t period)
{
    uint32_t now = LOAD_RELAXED(calls) + 1;
    STORE_RELAXED(calls, now >= period ? 0 : now);
    return now >= period;
}

#endif
