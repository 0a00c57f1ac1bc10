/* SPDX-License-Identifier: MIT
 *
 * The first eight bytes of a free block: the head of the freelist (superblock.h) as it was before the block was pushed.
 * In the hardened library it is encoded with a secret and the block's own address, and then mixed, so that every bit of
 * what is stored has its part in the count: whoever changes any of it is found by the first who compares the count, a
 * pop.  The sections do the same in assembly.
 */
#ifndef SUTLER_HEAP_NEXT_H
#define SUTLER_HEAP_NEXT_H

#include "base/compiler.h"
#ifdef SUTLER_HARDENED
#include "marks/marks.h"
#endif

static inline uint64_t next_get(const void *block)
{
    uint64_t stored = *(const uint64_t *)block;
#ifdef SUTLER_HARDENED
    stored = __builtin_bswap64(stored * INVERSE) ^ (uintptr_t)block ^ marks.link_key;
#endif
    return stored;
}

static inline void next_set(void *block, uint64_t head)
{
#ifdef SUTLER_HARDENED
    head = __builtin_bswap64(head ^ (uintptr_t)block ^ marks.link_key) * FACTOR;
#endif
    *(uint64_t *)block = head;
}

#endif
