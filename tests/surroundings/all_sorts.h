/* SPDX-License-Identifier: MIT
 *
 * What an allocator is asked for, all of it once: small blocks until the heap is large, large ones filled and grown,
 * most of it given back.  Makes no system call of its own.
 */
#ifndef TESTS_ALL_SORTS_H
#define TESTS_ALL_SORTS_H

#include "support/check.h"
#include <malloc.h>

#define ALL_SORTS_SMALL ((size_t)48 * MIB)

struct all_sorts {
    char **block;
    size_t count;
};

static inline size_t all_sorts_size(size_t i)
{
    static const size_t size[] = {24, 100, 480, 1100, 3000, 7000, 9000, 40000, 130000};
    return size[i % 11 % 9];
}

/* Blocks of all small sizes, `bytes` in all; every one is written to. */
static inline void all_sorts_grow(struct all_sorts *all, size_t bytes)
{
    size_t most = bytes / 2000;
    all->block = calloc(most, sizeof *all->block);
    CHECK(all->block != NULL);
    for (size_t had = 0; had < bytes && all->count < most; had += all_sorts_size(all->count++)) {
        size_t size = all_sorts_size(all->count);
        char *block = all->count % 5 == 0 ? calloc(1, size) : malloc(size);
        CHECK(block != NULL);
        memset(block, (int)all->count, size);
        all->block[all->count] = block;
    }
}

/* All but one of `keep`; 0: all. */
static inline void all_sorts_shrink(struct all_sorts *all, size_t keep)
{
    size_t kept = 0;
    for (size_t i = 0; i < all->count; i++)
        if (keep != 0 && i % keep == 0)
            all->block[kept++] = all->block[i];
        else
            free(all->block[i]);
    all->count = kept;
    if (keep == 0)
        free(all->block);
}

static inline void all_sorts_large(void)
{
    static const size_t size[] = {200 * KIB, MIB, 3 * MIB, 17 * MIB};
    for (int round = 0; round < 2; round++)
        for (size_t i = 0; i < sizeof size / sizeof size[0]; i++) {
            char *block = malloc(size[i]), *aligned = aligned_alloc(64 * KIB, size[i] & ~(64 * KIB - 1));
            CHECK(block != NULL && aligned != NULL);
            memset(block, 1, size[i]);
            aligned[0] = 1;
            CHECK((block = realloc(block, size[i] * 3 / 2)) != NULL && block[size[i] - 1] == 1);
            CHECK((block = realloc(block, size[i] / 2)) != NULL && block[size[i] / 2 - 1] == 1);
            free(aligned);
            free(block);
        }
}

static inline void all_sorts_once(size_t bytes)
{
    struct all_sorts all = {0};
    all_sorts_grow(&all, bytes);
    all_sorts_large();
    all_sorts_shrink(&all, 32);
    malloc_trim(0);
    CHECK(malloc_usable_size(all.block) >= all.count * sizeof *all.block);
    all_sorts_shrink(&all, 0);
    mallinfo2();
    malloc_trim(0);
}

#endif
