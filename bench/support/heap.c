/* SPDX-License-Identifier: MIT
 *
 * Why: see heap.h.
 */
#include "heap.h"

#include "random.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct heap_block {
    struct heap_block *next;
    uint64_t size;
    uint64_t mark; /* address and size, mixed */
    unsigned char rest[];
};

static uint64_t mark_of(const struct heap_block *block)
{
    return ((uintptr_t)block ^ block->size) * 0x9e3779b97f4a7c15u;
}

struct heap_block *heap_fill(uint64_t mib, uint64_t seed)
{
    struct random_source random;
    struct heap_block *chain = NULL;
    random_seed(&random, seed);
    for (uint64_t bytes = mib << 20, filled = 0; filled < bytes;) {
        uint64_t size = random_between(&random, 64, 1024);
        struct heap_block *block = malloc(size);
        if (!block) {
            fprintf(stderr, "out of memory after %llu bytes\n", (unsigned long long)filled);
            exit(3);
        }
        block->next = chain;
        block->size = size;
        block->mark = mark_of(block);
        memset(block->rest, (int)(size & 255), size - sizeof(*block));
        chain = block;
        filled += size;
    }
    return chain;
}

static uint64_t block_damage(const struct heap_block *block)
{
    size_t rest = block->size - sizeof(*block);
    return block->mark != mark_of(block) || block->rest[0] != (block->size & 255) ||
           block->rest[rest - 1] != (block->size & 255);
}

uint64_t heap_check(const struct heap_block *chain)
{
    uint64_t damaged = 0;
    for (; chain; chain = chain->next)
        damaged += block_damage(chain);
    return damaged;
}

uint64_t heap_free(struct heap_block *chain)
{
    uint64_t damaged = 0;
    while (chain) {
        struct heap_block *next = chain->next;
        damaged += block_damage(chain);
        free(chain);
        chain = next;
    }
    return damaged;
}
