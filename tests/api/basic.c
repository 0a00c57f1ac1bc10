/* SPDX-License-Identifier: MIT
 *
 * malloc and free at their edges: zero sizes, PTRDIFF_MAX, alignment, errno.  C23 and POSIX leave some of these to the
 * implementation; where they do, glibc's answer is the demand, because programs have come to depend on it.
 */
#include "support/family.h"

static void zero_sizes(void)
{
    void *first = malloc(opaque_size(0));
    void *second = malloc(opaque_size(0));
    CHECK(first != NULL && second != NULL);
    CHECK(first != second);
    free(first);
    free(second);
    free(NULL);

    void *cleared = calloc(opaque_size(0), 8);
    CHECK(cleared != NULL);
    free(cleared);
    cleared = calloc(8, opaque_size(0));
    CHECK(cleared != NULL);
    free(cleared);
}

static void too_large(void)
{
    static const size_t sizes[] = {(size_t)PTRDIFF_MAX + 1, (size_t)PTRDIFF_MAX + 4096, SIZE_MAX / 2 + 4097,
                                   SIZE_MAX - 65536,        SIZE_MAX - 4095,            SIZE_MAX - 15,
                                   SIZE_MAX - 1,            SIZE_MAX};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        size_t size = opaque_size(sizes[i]);
        errno = 0;
        CHECK_MSG(opaque(malloc(size)) == NULL, "malloc(%zu) succeeded", size);
        CHECK(errno == ENOMEM);
        errno = 0;
        CHECK(opaque(calloc(1, size)) == NULL && errno == ENOMEM);
        errno = 0;
        CHECK(opaque(realloc(NULL, size)) == NULL && errno == ENOMEM);
        errno = 0;
        CHECK(opaque(memalign(64, size)) == NULL && errno == ENOMEM);
        errno = 0;
        CHECK(opaque(valloc(size)) == NULL && errno == ENOMEM);
        errno = 0;
        CHECK(opaque(pvalloc(size)) == NULL && errno == ENOMEM);
        void *result = &result;
        CHECK(posix_memalign(&result, 64, size) == ENOMEM);
        CHECK_MSG(result == &result, "a failed posix_memalign changed its result");

        /* A failed realloc leaves the block as it was. */
        char *block = malloc(100);
        CHECK(block != NULL);
        memset(block, 0x5a, 100);
        errno = 0;
        CHECK(opaque(realloc(block, size)) == NULL && errno == ENOMEM);
        for (int k = 0; k < 100; k++)
            CHECK(block[k] == 0x5a);
        free(block);
    }
    /* Allowed by the standard, but more than any machine can map. */
    errno = 0;
    CHECK(opaque(malloc(opaque_size(PTRDIFF_MAX))) == NULL && errno == ENOMEM);
    errno = 0;
    CHECK(opaque(malloc(opaque_size((size_t)1 << 60))) == NULL && errno == ENOMEM);
}

static void every_size_is_aligned_and_writable(void)
{
    for (size_t size = 0; size <= 70000; size += size < 2100 ? 1 : 97) {
        unsigned char *block = malloc(size);
        CHECK(block != NULL);
        CHECK_MSG((uintptr_t)block % _Alignof(max_align_t) == 0, "malloc(%zu) = %p", size, (void *)block);
        memset(block, 0xa5, size);
        CHECK(size == 0 || (block[0] == 0xa5 && block[size - 1] == 0xa5));
        free(block);
    }
    for (unsigned bits = 16; bits <= 30; bits++) {
        for (int delta = -1; delta <= 1; delta++) {
            size_t size = ((size_t)1 << bits) + (size_t)delta;
            unsigned char *block = malloc(size);
            CHECK_MSG(block != NULL, "malloc(%zu)", size);
            CHECK((uintptr_t)block % _Alignof(max_align_t) == 0);
            block[0] = 1;
            block[size / 2] = 2;
            block[size - 1] = 3;
            free(block);
        }
    }
}

static void free_keeps_errno(void)
{
    for (unsigned bits = 0; bits <= 28; bits++) {
        for (int round = 0; round < 4; round++) {
            void *block = malloc((size_t)1 << bits);
            void *grown = realloc(malloc(10), (size_t)1 << bits);
            CHECK(block != NULL && grown != NULL);
            errno = 4711;
            free(block);
            CHECK_MSG(errno == 4711, "free of 2^%u bytes changed errno to %d", bits, errno);
            free(grown);
            CHECK(errno == 4711);
            free(NULL);
            CHECK(errno == 4711);
        }
    }
    /* And when the free ends a whole superblock or span. */
    enum { COUNT = 20000 };
    static void *blocks[COUNT];
    for (int i = 0; i < COUNT; i++)
        CHECK((blocks[i] = malloc((size_t)(i % 40) * 100)) != NULL);
    for (int i = 0; i < COUNT; i++) {
        errno = 4711;
        free(blocks[i]);
        CHECK(errno == 4711);
    }
}

static void success_keeps_errno(void)
{
    /* POSIX does not promise it, but a library that sets errno on success breaks careless programs. */
    for (unsigned bits = 0; bits <= 26; bits++) {
        errno = 4711;
        void *block = malloc((size_t)1 << bits);
        CHECK(block != NULL);
        CHECK_MSG(errno == 4711 || !test_is_sutler(), "malloc of 2^%u bytes set errno to %d", bits, errno);
        free(block);
    }
}

int main(void)
{
    test_begin(60);
    zero_sizes();
    too_large();
    every_size_is_aligned_and_writable();
    free_keeps_errno();
    success_keeps_errno();
    return 0;
}
