/* SPDX-License-Identifier: MIT
 *
 * Aligned allocation by every name it has.  Natural alignment of power-of-two classes is how the library serves most of
 * it, so the matrix runs alignment x size over all borders, frees in both orders, and grows the results by realloc
 * (which need not keep the alignment, but must keep the bytes).
 */
#include "support/family.h"
#include "support/pattern.h"
#include "support/shadow.h"

static void *by_posix_memalign(size_t alignment, size_t size)
{
    void *block = NULL;
    int error = posix_memalign(&block, alignment, size);
    CHECK_MSG(error == 0, "posix_memalign(%zu, %zu) = %d", alignment, size, error);
    return block;
}

static void *(*const allocators[])(size_t, size_t) = {memalign, aligned_alloc, by_posix_memalign};

static void one(void *(*allocate)(size_t, size_t), size_t alignment, size_t size)
{
    enum { COUNT = 5 };
    void *blocks[COUNT];
    size_t usable[COUNT];
    int count = alignment + size > MIB ? 2 : COUNT;
    for (int i = 0; i < count; i++) {
        blocks[i] = allocate(alignment, size);
        CHECK_MSG(blocks[i] != NULL, "alignment %zu size %zu", alignment, size);
        CHECK_MSG((uintptr_t)blocks[i] % alignment == 0, "alignment %zu size %zu: %p", alignment, size, blocks[i]);
        usable[i] = malloc_usable_size(blocks[i]);
        CHECK_MSG(usable[i] >= size, "alignment %zu size %zu: usable %zu", alignment, size, usable[i]);
        shadow_claim(blocks[i], usable[i]);
        pattern_fill_sparse(blocks[i], size, (uint64_t)i);
    }
    for (int i = 0; i < count; i++)
        pattern_verify_sparse(blocks[i], size, size, (uint64_t)i);
    for (int i = 0; i < count; i++) {
        shadow_release(blocks[i], usable[i]);
        if (i % 2 == 0) {
            free(blocks[i]);
            continue;
        }
        void *grown = realloc(blocks[i], size * 2 + 1);
        CHECK(grown != NULL);
        pattern_verify_sparse(grown, size, size, (uint64_t)i);
        free(grown);
    }
}

static void matrix(size_t largest_alignment)
{
    static const size_t sizes[] = {0,     1,     15,    16,    17,     48,     64,     100,     128,     200,    1000,
                                   1024,  2048,  3000,  4095,  4096,   4097,   8192,   12288,   16384,   30000,  32768,
                                   65535, 65536, 65537, 98304, 131072, 262144, 300000, 1000000, 1048576, 2097152,
                                   5000000};
    for (size_t alignment = 16; alignment <= largest_alignment; alignment *= 2) {
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            for (size_t a = 0; a < sizeof allocators / sizeof allocators[0]; a++)
                one(allocators[a], alignment, sizes[i]);
        }
    }
    for (size_t alignment = 1; alignment < 16; alignment *= 2) {
        void *block = memalign(alignment, 33);
        CHECK(block != NULL && (uintptr_t)block % 16 == 0);
        free(block);
    }
    void *block = by_posix_memalign(sizeof(void *), 3);
    CHECK((uintptr_t)block % sizeof(void *) == 0);
    free(block);
}

static void bad_alignments(void)
{
    static const size_t bad[] = {0, 1, 2, 3, 4, 5, 7, 9, 12, 24, 48, 4095, 4097, SIZE_MAX, SIZE_MAX - 7};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        void *block = &block;
        errno = 4711;
        CHECK_MSG(posix_memalign(&block, bad[i], 100) == EINVAL, "posix_memalign accepts alignment %zu", bad[i]);
        CHECK(block == &block);
        CHECK_MSG(errno == 4711, "posix_memalign set errno");
    }
    /* C17 DR 460: an invalid alignment fails with NULL.  glibc before 2.38 rounds it up instead. */
    errno = 0;
    void *block = aligned_alloc(opaque_size(24), 48);
    if (block == NULL)
        CHECK(errno == EINVAL);
    else
        CHECK(!test_is_sutler());
    free(block);
    /* Too large to satisfy: ENOMEM or EINVAL, never a block. */
    errno = 0;
    CHECK(opaque(memalign(opaque_size((size_t)1 << 62), 100)) == NULL && (errno == ENOMEM || errno == EINVAL));
    CHECK(posix_memalign(&block, opaque_size((size_t)1 << 62), 100) == ENOMEM);
    CHECK(posix_memalign(&block, opaque_size((size_t)1 << 63), (size_t)1 << 62) == ENOMEM);
}

static void page_aligned(void)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    static const size_t sizes[] = {0, 1, 100, 4095, 4096, 4097, 65536, 100000, 3000000};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        size_t size = opaque_size(sizes[i]);
        void *block = valloc(size);
        CHECK(block != NULL && (uintptr_t)block % page == 0 && malloc_usable_size(block) >= size);
        memset(block, 1, size);
        void *rounded = pvalloc(size);
        CHECK(rounded != NULL && (uintptr_t)rounded % page == 0);
        size_t whole = (size + page - 1) / page * page;
        CHECK_MSG(malloc_usable_size(rounded) >= whole, "pvalloc(%zu): usable %zu", size, malloc_usable_size(rounded));
        memset(rounded, 1, whole);
        free(rounded);
        free(block);
    }
}

int main(int argc, char **argv)
{
    test_begin(120);
    shadow_create();
    matrix(test_option(argc, argv, "--largest-mib", 2) * MIB);
    bad_alignments();
    page_aligned();
    return 0;
}
