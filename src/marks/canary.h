/* SPDX-License-Identifier: MIT
 *
 * Canaries: up to eight bytes directly behind the bytes that were asked for, made of the block's address and a secret.
 * None of them is zero, so that a string's end written one too far is found.
 */
#ifndef SUTLER_MARKS_CANARY_H
#define SUTLER_MARKS_CANARY_H

#include <string.h>

#include "marks/marks.h"

#define CANARY_BYTES 8u

static inline uint64_t canary_of(const void *p)
{
    uint64_t mixed = ((uintptr_t)p ^ marks.canary_key) * FACTOR;
    return __builtin_bswap64(mixed) | 0x0101010101010101ull; /* the first byte is the one all bits have gone into */
}

static inline unsigned canary_length(size_t slack)
{
    return slack < CANARY_BYTES ? (unsigned)slack : CANARY_BYTES;
}

/* The eight bytes that end with the canary of `length` bytes; what lies before it stays.  slack > 0. */
static inline char *canary_word(const void *p, size_t size, unsigned length)
{
    return (char *)p + size + length - CANARY_BYTES;
}

/* Of a block that holds zeros in the last bytes of its `size`, or nothing that is wanted.  size + slack >= 8. */
static inline void canary_set_in_zeros(void *p, size_t size, size_t slack)
{
    if (unlikely(slack == 0))
        return;
    unsigned length = canary_length(slack);
    uint64_t word = canary_of(p) << (8 * (CANARY_BYTES - length));
    memcpy(canary_word(p, size, length), &word, sizeof word);
}

/* `canary` in its place; what lies before it stays. */
static inline void canary_replace(void *p, size_t size, size_t slack, uint64_t canary)
{
    if (unlikely(slack == 0))
        return;
    const unsigned length = canary_length(slack), shift = 8 * (CANARY_BYTES - length);
    uint64_t word;
    memcpy(&word, canary_word(p, size, length), sizeof word);
    word = (word & ~(~0ull << shift)) | canary << shift;
    memcpy(canary_word(p, size, length), &word, sizeof word);
}

/* Of one that is in use.  size + slack >= 8. */
static inline void canary_set(void *p, size_t size, size_t slack)
{
    canary_replace(p, size, slack, canary_of(p));
}

/* Zeros in its place. */
static inline void canary_clear(void *p, size_t size, size_t slack)
{
    canary_replace(p, size, slack, 0);
}

static inline bool canary_is_whole(const void *p, size_t size, size_t slack)
{
    if (unlikely(slack == 0))
        return true;
    unsigned length = canary_length(slack), shift = 8 * (CANARY_BYTES - length);
    uint64_t word;
    memcpy(&word, canary_word(p, size, length), sizeof word);
    return ((word ^ canary_of(p) << shift) >> shift) == 0;
}

/* Of a block that was all zero when it was handed out: whether what is behind the canary in its last eight bytes still
 * is.  Who writes before the start of the next block writes there. */
static inline bool slack_end_is_whole(const void *p, size_t bytes, size_t slack)
{
    if (likely(slack <= CANARY_BYTES))
        return true;
    uint64_t word;
    memcpy(&word, (const char *)p + bytes - sizeof word, sizeof word);
    return slack >= 2 * CANARY_BYTES ? word == 0 : word >> (8 * (2 * CANARY_BYTES - slack)) == 0;
}

#endif
