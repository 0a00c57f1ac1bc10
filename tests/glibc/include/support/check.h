/* SPDX-License-Identifier: MIT
 *
 * The checks of glibc's tests, by their names and in our words.  A check that fails is counted where a parent sees it
 * that shares the count (test-driver.c), and the test goes on unless the name says otherwise.
 */
#ifndef TESTS_GLIBC_CHECK_H
#define TESTS_GLIBC_CHECK_H

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern int *test_failures; /* shared with children */

static inline void support_record_failure(void)
{
    __atomic_add_fetch(test_failures, 1, __ATOMIC_RELAXED);
}

#define TEST_SAY(...) (printf("%s:%d: ", __FILE__, __LINE__), printf(__VA_ARGS__), puts(""), (void)fflush(stdout))

#define FAIL(...)                        (support_record_failure(), TEST_SAY(__VA_ARGS__))
#define FAIL_RET(...)                    return FAIL(__VA_ARGS__), 1
#define FAIL_EXIT(status, ...)           (FAIL(__VA_ARGS__), exit(status))
#define FAIL_EXIT1(...)                  FAIL_EXIT(1, __VA_ARGS__)
#define FAIL_UNSUPPORTED(...)            (TEST_SAY(__VA_ARGS__), exit(77))
#define TEST_VERIFY(condition)           ((condition) ? (void)0 : (void)FAIL("%s is not so", #condition))
#define TEST_VERIFY_EXIT(condition)      ((condition) ? (void)0 : (void)FAIL_EXIT1("%s is not so", #condition))
#define TEST_COMPARE(left, right)                                                                                      \
    ((left) == (right)                                                                                                 \
         ? (void)0                                                                                                     \
         : (void)FAIL("%s (%lld) is not %s (%lld)", #left, (long long)(left), #right, (long long)(right)))
#define TEST_COMPARE_BLOB(left, left_bytes, right, right_bytes)                                                        \
    TEST_VERIFY((size_t)(left_bytes) == (size_t)(right_bytes) && memcmp(left, right, left_bytes) == 0)
#define TEST_COMPARE_STRING(left, right) TEST_VERIFY(strcmp(left, right) == 0)

#endif
