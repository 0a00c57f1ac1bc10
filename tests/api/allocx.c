/* SPDX-License-Identifier: MIT
 *
 * jemalloc's own calls as its manual has them: alignment and zeros by flags, the real size as the border up to which
 * zeros are promised, and blocks that pass between these calls and malloc, realloc and free.
 */
#include "support/family.h"
#include "support/pattern.h"

enum { ZERO = 0x40, TCACHE_NONE = 1 << 8, ARENA_0 = 1 << 20 };

static const size_t sizes[] = {1, 16, 100, 1000, 1025, 5000, 16 * KIB, 100 * KIB, 300 * KIB, 3 * MIB, 40 * MIB};

static void check_zero(const unsigned char *block, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        CHECK_MSG(block[i] == 0, "byte %zu of %zu is %d", i, to, block[i]);
}

/* Leaves blocks of the size behind that hold something. */
static void dirty(size_t size)
{
    enum { COUNT = 4 };
    void *blocks[COUNT];
    for (int i = 0; i < COUNT; i++) {
        blocks[i] = malloc(size);
        CHECK(blocks[i] != NULL);
        memset(blocks[i], 0xa5, malloc_usable_size(blocks[i]));
    }
    for (int i = 0; i < COUNT; i++)
        free(blocks[i]);
}

static void blocks_are_aligned_and_zero(size_t size)
{
    for (int bits = 0; bits <= 17; bits++)
        for (int zero = 0; zero <= ZERO; zero += ZERO) {
            dirty(size);
            unsigned char *block = mallocx(size, bits | zero | TCACHE_NONE | ARENA_0);
            CHECK(block != NULL && (uintptr_t)block % ((size_t)1 << bits) == 0);
            size_t real = sallocx(block, 0);
            CHECK(real >= size && real == malloc_usable_size(block) && real == nallocx(size, bits));
            if (zero)
                check_zero(block, 0, real);
            pattern_fill_sparse(block, size, 7);
            dallocx(block, bits | TCACHE_NONE);
        }
}

/* What is promised is there to the last byte. */
static void alignments_of_many_pages_are_sized(void)
{
    static const size_t some[] = {1, 100, 5000, 200000, 3000000, 20000000};
    for (int bits = 18; bits <= 26; bits++)
        for (size_t i = 0; i < sizeof some / sizeof *some; i++) {
            unsigned char *block = mallocx(some[i], bits);
            CHECK(block != NULL && (uintptr_t)block % ((size_t)1 << bits) == 0);
            size_t real = nallocx(some[i], bits);
            CHECK(real >= some[i] && real <= sallocx(block, 0)); /* what was kept may be longer */
            block[real - 1] = 1;
            dallocx(block, bits);
        }
}

static void resizing_keeps_bytes_alignment_and_zeros(size_t size)
{
    for (int bits = 0; bits <= 16; bits += 8)
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
            size_t wanted = sizes[i], kept = size < wanted ? size : wanted;
            unsigned char *block = mallocx(size, bits | ZERO);
            CHECK(block != NULL);
            pattern_fill_sparse(block, size, 9);
            size_t real = sallocx(block, 0);
            dirty(wanted);
            block = rallocx(block, wanted, bits | ZERO);
            CHECK(block != NULL && (uintptr_t)block % ((size_t)1 << bits) == 0);
            CHECK(sallocx(block, 0) >= wanted);
            pattern_verify_sparse(block, size, kept, 9);
            check_zero(block, real, sallocx(block, 0));
            if (real > size && wanted > size)
                check_zero(block, size, real);
            sdallocx(block, wanted, bits);
        }
}

static void a_block_that_fits_is_moved_to_be_aligned(void)
{
    enum { COUNT = 8, SIZE = 900, BITS = 8 };
    void *blocks[COUNT];
    for (int i = 0; i < COUNT; i++) {
        blocks[i] = mallocx(SIZE, 0);
        pattern_fill_sparse(blocks[i], SIZE, (uint64_t)i);
    }
    for (int i = 0; i < COUNT; i++) {
        blocks[i] = rallocx(blocks[i], SIZE, BITS);
        CHECK_MSG((uintptr_t)blocks[i] % (1 << BITS) == 0, "%p", blocks[i]);
        pattern_verify_sparse(blocks[i], SIZE, SIZE, (uint64_t)i);
        dallocx(blocks[i], BITS);
    }
}

/* There and back again: what was zero stays zero, up to the real size on the way. */
static void zeros_last(size_t size)
{
    const size_t least = 1000;
    unsigned char *block = mallocx(size, ZERO);
    dirty(least);
    block = rallocx(block, least, ZERO);
    size_t real = sallocx(block, 0);
    dirty(size);
    block = rallocx(block, size, ZERO);
    CHECK(real >= least && block != NULL);
    check_zero(block, 0, sallocx(block, 0));
    dallocx(block, 0);
}

static void blocks_pass_between_the_families(size_t size)
{
    void *block = malloc(size);
    pattern_fill_sparse(block, size, 3);
    block = rallocx(block, size * 2, 0);
    CHECK(block != NULL);
    pattern_verify_sparse(block, size, size, 3);
    block = realloc(block, size * 3);
    pattern_verify_sparse(block, size, size, 3);
    size_t real = sallocx(block, 0);
    size_t in_place = xallocx(block, size * 4, 0, 0);
    CHECK(in_place >= real && in_place == sallocx(block, 0));
    pattern_verify_sparse(block, size, size, 3);
    dallocx(block, 0);
    block = mallocx(size, 0);
    CHECK(block != NULL);
    free(block);
}

static void the_impossible_is_refused(void)
{
    CHECK(mallocx(opaque_size(SIZE_MAX / 2 + 1), 0) == NULL);
    CHECK(mallocx(opaque_size(SIZE_MAX / 2 + 1), 12 | ZERO) == NULL);
    unsigned char *block = mallocx(100, 0);
    memset(block, 1, 100);
    CHECK(rallocx(block, opaque_size(SIZE_MAX / 2 + 1), 0) == NULL);
    CHECK(rallocx(block, opaque_size(SIZE_MAX / 2 + 1), 8) == NULL);
    CHECK(block[0] == 1 && block[99] == 1);
    dallocx(block, 0);
}

int main(void)
{
    bool has = FAMILY_HAS(mallocx) & FAMILY_HAS(rallocx) & FAMILY_HAS(xallocx) & FAMILY_HAS(sallocx) &
               FAMILY_HAS(dallocx) & FAMILY_HAS(sdallocx) & FAMILY_HAS(nallocx);
    if (!has)
        return 0;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        blocks_are_aligned_and_zero(sizes[i]);
        resizing_keeps_bytes_alignment_and_zeros(sizes[i]);
        blocks_pass_between_the_families(sizes[i]);
        zeros_last(sizes[i]);
    }
    alignments_of_many_pages_are_sized();
    a_block_that_fits_is_moved_to_be_aligned();
    the_impossible_is_refused();
    return 0;
}
