/* SPDX-License-Identifier: MIT
 *
 * The seam between jemalloc's integration tests and the malloc of this process.
 *
 * Their tests include "test/jemalloc_test.h" for a small harness and for jemalloc's own interfaces.  This is our own
 * header of that name: the harness macros as the tests use them, and answers to the few mallctl questions that the
 * portable ones ask (purge; the largest size that can be had).  Nothing of jemalloc is compiled or called.
 */
#ifndef CRATES_JEMALLOC_TEST_H
#define CRATES_JEMALLOC_TEST_H

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <malloc.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LG_SIZEOF_PTR 3
#define SIZE_T_MAX    SIZE_MAX
#define BUFERROR_BUF  64

#define JEMALLOC_DIAGNOSTIC_PUSH _Pragma("GCC diagnostic push")
#define JEMALLOC_DIAGNOSTIC_POP  _Pragma("GCC diagnostic pop")
#define JEMALLOC_DIAGNOSTIC_IGNORE_ALLOC_SIZE_LARGER_THAN                                                              \
    _Pragma("GCC diagnostic ignored \"-Walloc-size-larger-than=\"")

#define TEST_MALLOC_SIZE(block) malloc_usable_size(block)

static int harness_failures;

#define test_fail(...)                                                                                                 \
    do {                                                                                                               \
        printf("FAILED %s:%d: ", __func__, __LINE__);                                                                  \
        printf(__VA_ARGS__);                                                                                           \
        printf("\n");                                                                                                  \
        harness_failures++;                                                                                            \
    } while (0)

#define HARNESS_EXPECT(condition, ...)                                                                                 \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            test_fail(__VA_ARGS__);                                                                                    \
    } while (0)

#define expect_false(value, ...)        HARNESS_EXPECT(!(value), __VA_ARGS__)
#define expect_ptr_null(value, ...)     HARNESS_EXPECT((value) == NULL, __VA_ARGS__)
#define expect_ptr_not_null(value, ...) HARNESS_EXPECT((value) != NULL, __VA_ARGS__)
#define expect_d_eq(left, right, ...)   HARNESS_EXPECT((left) == (right), __VA_ARGS__)
#define expect_d_ne(left, right, ...)   HARNESS_EXPECT((left) != (right), __VA_ARGS__)

#define TEST_BEGIN(name) static void name(void)
#define TEST_END

static inline void set_errno(int value)
{
    errno = value;
}

static inline int get_errno(void)
{
    return errno;
}

static inline void buferror(int error, char *buffer, size_t size)
{
    snprintf(buffer, size, "error %d", error);
}

static inline int mallctl(const char *name, void *old, size_t *length, void *fresh, size_t fresh_length)
{
    (void)fresh;
    (void)fresh_length;
    if (strcmp(name, "arena.0.purge") == 0)
        malloc_trim(0);
    else if (strcmp(name, "arenas.nlextents") == 0 && *length == sizeof(unsigned))
        *(unsigned *)old = 1;
    else
        return ENOENT;
    return 0;
}

static inline int mallctlnametomib(const char *name, size_t *mib, size_t *length)
{
    (void)mib;
    *length = 4;
    return strcmp(name, "arenas.lextent.0.size") == 0 ? 0 : ENOENT;
}

static inline int mallctlbymib(const size_t *mib, size_t mib_length, void *old, size_t *length, void *fresh,
                               size_t fresh_length)
{
    (void)mib;
    (void)mib_length;
    (void)length;
    (void)fresh;
    (void)fresh_length;
    *(size_t *)old = PTRDIFF_MAX;
    return 0;
}

typedef void harness_test(void);

static inline int harness_run(harness_test *const *tests, size_t count)
{
    for (size_t i = 0; i < count; i++)
        tests[i]();
    printf("%zu tests, %d failures\n", count, harness_failures);
    return harness_failures != 0;
}

static inline int test_list(size_t count, harness_test *const *tests)
{
    return harness_run(tests, count);
}

#ifdef __cplusplus
template <typename... Tests> static int test(Tests... list)
{
    harness_test *const tests[] = {list...};
    return test_list(sizeof tests / sizeof tests[0], tests);
}
#else
#define test(...)                                                                                                      \
    test_list(sizeof((harness_test *const[]){__VA_ARGS__}) / sizeof(harness_test *),                                   \
              (harness_test *const[]){__VA_ARGS__})
#endif

#endif
