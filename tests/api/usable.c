/* SPDX-License-Identifier: MIT
 *
 * What the allocator says about sizes must be true: every usable byte may be written, malloc_good_size and nallocx
 * foretell what malloc will give, and the sized frees accept what C23 says they accept.
 */
#include "support/family.h"
#include "support/pattern.h"
#include "support/shadow.h"

static void usable_bytes_are_ours(void)
{
    enum { COUNT = 3000 };
    static unsigned char *blocks[COUNT];
    static size_t usable[COUNT];
    CHECK(malloc_usable_size(NULL) == 0);
    for (size_t i = 0; i < COUNT; i++) {
        size_t size = i < 2000 ? i : (i - 1999) * 331;
        blocks[i] = malloc(size);
        CHECK(blocks[i] != NULL);
        usable[i] = malloc_usable_size(blocks[i]);
        CHECK_MSG(usable[i] >= size, "malloc(%zu): usable %zu", size, usable[i]);
        CHECK_MSG(!test_is_sutler() || usable[i] >= 8, "malloc(%zu): usable %zu", size, usable[i]);
        shadow_claim(blocks[i], usable[i]);
        pattern_fill(blocks[i], usable[i], i);
    }
    for (size_t i = 0; i < COUNT; i++) {
        pattern_verify(blocks[i], usable[i], i);
        CHECK_MSG(malloc_usable_size(blocks[i]) == usable[i], "usable size of %p changed", (void *)blocks[i]);
        free(blocks[i]);
    }
}

/* Size classes waste at most 12.5 % from 128 bytes up, and go in 16-byte steps below.  (Larger blocks are whole
 * spans.) */
static void waste_is_bounded(void)
{
    if (!test_is_sutler())
        return;
    for (size_t size = 1; size <= 131072; size += size < 4096 ? 1 : 61) {
        void *block = malloc(size);
        CHECK(block != NULL);
        size_t usable = malloc_usable_size(block);
        if (size <= 128)
            CHECK_MSG(usable - size < 16, "malloc(%zu) rounds to %zu", size, usable);
        else /* a request just above a class is the worst case: up to 1/8 of what is handed out */
            CHECK_MSG((usable - size) * 8 <= usable, "malloc(%zu) rounds to %zu", size, usable);
        free(block);
    }
}

static void good_size_is_kept(void)
{
    if (FAMILY_HAS(malloc_good_size)) {
        for (size_t size = 0; size < 400000; size += size < 3000 ? 1 : 457) {
            size_t good = malloc_good_size(size);
            CHECK(good >= size);
            void *block = malloc(size);
            CHECK_MSG(malloc_usable_size(block) == good, "malloc_good_size(%zu) = %zu, malloc gives %zu", size, good,
                      malloc_usable_size(block));
            free(block);
            CHECK_MSG(malloc_good_size(good) == good, "good size %zu of %zu is not itself good", good, size);
        }
    }
    if (FAMILY_HAS(nallocx)) {
        for (size_t size = 1; size < 400000; size += size < 3000 ? 1 : 457) {
            void *block = malloc(size);
            CHECK_MSG(nallocx(size, 0) == malloc_usable_size(block), "nallocx(%zu, 0) = %zu", size, nallocx(size, 0));
            free(block);
        }
        /* flags: log2 of the alignment in the low six bits */
        for (int bits = 4; bits <= 16; bits++) {
            size_t foretold = nallocx(100, bits);
            void *block = memalign((size_t)1 << bits, 100);
            CHECK_MSG(foretold == malloc_usable_size(block), "nallocx(100, 2^%d) = %zu, memalign gives %zu", bits,
                      foretold, malloc_usable_size(block));
            free(block);
        }
        CHECK_MSG(nallocx(SIZE_MAX, 0) == 0, "nallocx of an impossible size is 0");
    }
}

static void sized_frees(void)
{
    if (FAMILY_HAS(free_sized)) {
        free_sized(NULL, 0);
        free_sized(NULL, 100);
        for (size_t size = 0; size <= 3 * MIB; size = size < 64 ? size + 1 : size * 5 / 4) {
            free_sized(malloc(size), size);
            free_sized(calloc(1, size), size);
            if (size != 0)
                free_sized(realloc(malloc(7), size), size);
        }
    }
    if (FAMILY_HAS(free_aligned_sized)) {
        free_aligned_sized(NULL, 64, 100);
        for (size_t alignment = 16; alignment <= MIB; alignment *= 2) {
            for (size_t size = alignment; size <= 4 * MIB; size *= 3) {
                size_t whole = (size + alignment - 1) / alignment * alignment;
                void *block = aligned_alloc(alignment, whole);
                CHECK(block != NULL);
                free_aligned_sized(block, alignment, whole);
            }
        }
    }
    if (FAMILY_HAS(cfree)) {
        cfree(NULL);
        cfree(malloc(100));
        cfree(calloc(3, 100000));
    }
}

int main(void)
{
    test_begin(60);
    shadow_create();
    usable_bytes_are_ours();
    waste_is_bounded();
    good_size_is_kept();
    sized_frees();
    return 0;
}
