/* SPDX-License-Identifier: MIT
 *
 * Whether a freelist is what it should be.  Along the list that takes a cache miss a block, one after the other.  When
 * a superblock is released all its blocks are on the list, and then it can be done in the order of addresses, which the
 * processor foresees.  A block whose next is {b | n} had itself become the head {block | n + 1}.  So the heads that the
 * blocks were are the same as the list's head and all nexts but the last one's, 0.  If they are, each block is named
 * once, by the one with the next higher count, and the list is whole.  The two collections are compared by sums of a
 * hash.
 */
#include "heap/superblock.h"

const char *superblock_check_list(const struct superblock *s, uint64_t list)
{
    uint64_t seen[SUPERBLOCK_BLOCKS_MAX / 64] = {0};
    size_t bytes = (size_t)s->blocks * s->block_bytes;
    unsigned count = freelist_count(list);
    if (count > s->carved)
        return "more blocks on the list than exist";
    for (uint64_t at = list; at != 0; count--) {
        if (count == 0)
            return "list is longer than its count";
        char *block = freelist_top(at);
        if ((uintptr_t)block - s->base >= bytes)
            return "a block outside the superblock on the list";
        unsigned i = superblock_block_number(s, block);
        if (block != superblock_block(s, i))
            return "an address inside a block on the list";
        if (seen[i / 64] >> (i % 64) & 1)
            return "a block twice on the list";
        seen[i / 64] |= 1ull << (i % 64);
        if (freelist_count(at) != count)
            return "a free block was written to";
        at = next_get(block);
    }
    return count == 0 ? NULL : "list is shorter than its count";
}

static uint64_t hash(uint64_t head)
{
    /* Folded first: else what two heads exchange, a count for example, would cancel out in the sum. */
    const unsigned __int128 product = (unsigned __int128)(head ^ head >> 32) * 0x9e3779b97f4a7c15ull;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

const char *superblock_check_all_free(const struct superblock *s, uint64_t list)
{
    ASSERT(freelist_count(list) == s->carved);
    char *block = (char *)s->base;
    uint64_t named = list != 0 ? hash(list) : 0, heads = 0;
    if (s->whole_bytes != s->carved * s->block_bytes)
        return superblock_check_list(s, list); /* there are gaps between them */
    for (unsigned i = 0; i < s->carved; i++, block += s->block_bytes) {
        uint64_t next = next_get(block);
        named += next != 0 ? hash(next) : 0;
        heads += hash(freelist_pack(block, freelist_count(next) + 1));
    }
    return likely(named == heads) ? NULL : superblock_check_list(s, list);
}

bool superblock_list_is_scattered(const struct superblock *s)
{
    const unsigned looks = 16, fewest = 256; /* the lines of fewer blocks are soon all in the cache, */
    const size_t largest = 1024;             /* and of larger ones few are carved at a time */
    const ptrdiff_t near = (ptrdiff_t)s->block_bytes * 4;
    unsigned apart = 0; /* the last block of the list, which has no next, counts */
    if (s->carved < fewest || s->block_bytes > largest || s->whole_bytes != s->carved * s->block_bytes)
        return false;
    for (unsigned i = 0; i < looks; i++) {
        const char *block = superblock_block(s, i * (s->carved / looks));
        const ptrdiff_t distance = (char *)freelist_top(next_get(block)) - block;
        apart += distance < -near || distance > near;
    }
    return apart > looks / 2;
}
