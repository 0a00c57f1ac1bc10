/* SPDX-License-Identifier: MIT
 *
 * calloc: cleared, always.  The interesting case is not fresh memory but memory that was dirtied, freed, perhaps purged
 * and handed out again, because allocators skip the clearing where they believe the pages are still zero.
 */
#include "support/family.h"
#include "support/rng.h"

static void expect_zero(const unsigned char *block, size_t size)
{
    for (size_t i = 0; i < size; i++)
        CHECK_MSG(block[i] == 0, "calloc of %zu bytes at %p: byte %zu is 0x%x", size, (const void *)block, i, block[i]);
}

static void overflow(void)
{
    static const struct {
        size_t count, size;
    } cases[] = {{SIZE_MAX, 2},
                 {2, SIZE_MAX},
                 {SIZE_MAX / 2 + 1, 2},
                 {(size_t)1 << 32, (size_t)1 << 32},
                 {((size_t)1 << 32) + 1, (size_t)1 << 32},
                 {SIZE_MAX / 16 + 1, 16},
                 {SIZE_MAX / 24 + 1, 24},
                 {SIZE_MAX, SIZE_MAX},
                 {PTRDIFF_MAX, 2}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        size_t count = opaque_size(cases[i].count), size = opaque_size(cases[i].size);
        errno = 0;
        CHECK_MSG(opaque(calloc(count, size)) == NULL, "calloc(%zu, %zu) succeeded", count, size);
        CHECK(errno == ENOMEM);
        errno = 0;
        char *block = malloc(48);
        CHECK(block != NULL);
        memset(block, 7, 48);
        CHECK_MSG(opaque(reallocarray(block, count, size)) == NULL, "reallocarray(%zu, %zu) succeeded", count, size);
        CHECK(errno == ENOMEM && block[0] == 7 && block[47] == 7);
        free(block);
    }
    void *array = reallocarray(NULL, 10, 10);
    CHECK(array != NULL && malloc_usable_size(array) >= 100);
    array = reallocarray(array, 1000, 1000);
    CHECK(array != NULL && malloc_usable_size(array) >= 1000000);
    free(array);
}

static void dirty_reuse(size_t size, int rounds)
{
    enum { COUNT = 64 };
    unsigned char *blocks[COUNT];
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < COUNT; i++) {
            blocks[i] = round % 2 == 0 ? malloc(size) : calloc(1, size);
            CHECK(blocks[i] != NULL);
            if (round % 2 == 1)
                expect_zero(blocks[i], size);
            memset(blocks[i], 0xff, malloc_usable_size(blocks[i]));
        }
        for (int i = 0; i < COUNT; i++)
            free(blocks[(i * 37) % COUNT]);
        if (round % 6 == 4)
            malloc_trim(0); /* purged pages come back zero, unpurged ones do not: both kinds now mix */
    }
}

/* Large blocks of which a few pages were written to, and the last byte: what is cleared may not be what was there. */
static void sparse_reuse(struct rng *rng, int rounds)
{
    static const size_t sizes[] = {700000, 1 << 20, (3 << 20) + 17, 9 << 20, 20 << 20, 70 << 20};
    for (int i = 0; i < rounds; i++) {
        size_t size = sizes[rng_below(rng, sizeof sizes / sizeof sizes[0])];
        unsigned char *block = calloc(1, size);
        CHECK(block != NULL);
        expect_zero(block, i % 2 == 0 ? size : 4096);
        for (uint64_t writes = rng_below(rng, 400); writes > 0; writes--)
            block[rng_below(rng, size)] = 0xee;
        if (rng_below(rng, 4) == 0)
            memset(block + size / 4, 0xdd, size / 2);
        block[size - 1] = 0xff;
        free(block);
    }
}

static void mixed_sizes(struct rng *rng, int operations)
{
    enum { SLOTS = 512 };
    static unsigned char *slots[SLOTS];
    for (int i = 0; i < operations; i++) {
        size_t slot = rng_below(rng, SLOTS);
        free(slots[slot]);
        size_t size = rng_size(rng, 18);
        size_t count = 1 + rng_below(rng, 4);
        slots[slot] = calloc(count, size);
        CHECK(slots[slot] != NULL);
        expect_zero(slots[slot], size * count);
        memset(slots[slot], 0xdd, malloc_usable_size(slots[slot]));
        if (i % 5000 == 4999)
            malloc_trim(0);
    }
    for (int i = 0; i < SLOTS; i++)
        free(slots[i]);
}

int main(void)
{
    test_begin(120);
    struct rng rng = {test_seed_from(NULL)};
    overflow();
    static const size_t sizes[] = {1,     8,      16,     24,      100,     500,     1024,   2000,    4096,
                                   10000, 32768,  65536,  70000,   131072,  300000,  524288, 1048576, 1500000};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        dirty_reuse(sizes[i], sizes[i] > 100000 ? 6 : 12);
    for (size_t bytes = 4 * MIB; bytes <= 64 * MIB; bytes *= 4) {
        for (int round = 0; round < 3; round++) {
            unsigned char *block = calloc(1, bytes + 1);
            CHECK(block != NULL);
            expect_zero(block, bytes + 1);
            memset(block, 0xee, bytes + 1);
            free(block);
        }
    }
    mixed_sizes(&rng, 20000);
    sparse_reuse(&rng, 40);
    return 0;
}
