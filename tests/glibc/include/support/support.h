/* SPDX-License-Identifier: MIT
 *
 * Helpers of glibc's tests that end the test when what they ask for is refused.
 */
#ifndef TESTS_GLIBC_SUPPORT_H
#define TESTS_GLIBC_SUPPORT_H

#include "support/check.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/mman.h>

#define TEST_NEED(pointer) test_need(pointer, #pointer)

static inline void *test_need(void *pointer, const char *what)
{
    if (pointer == NULL)
        FAIL_EXIT1("%s is refused", what);
    return pointer;
}

#define xmalloc(bytes)        TEST_NEED(malloc(bytes))
#define xcalloc(count, bytes) TEST_NEED(calloc(count, bytes))
#define xrealloc(old, bytes)  TEST_NEED(realloc(old, bytes))
#define xstrdup(text)         ((char *)TEST_NEED(strdup(text)))

__attribute__((format(printf, 1, 2))) static inline char *xasprintf(const char *format, ...)
{
    char *text = NULL;
    va_list list;
    va_start(list, format);
    if (vasprintf(&text, format, list) < 0)
        FAIL_EXIT1("vasprintf is refused");
    va_end(list);
    return text;
}

static inline ssize_t write_message(const char *text)
{
    return write(STDOUT_FILENO, text, strlen(text));
}

/* For a test whose library is expected to complain. */
static inline void ignore_stderr(void)
{
    int descriptor = open("/dev/null", O_WRONLY);
    if (descriptor >= 0) {
        dup2(descriptor, STDERR_FILENO);
        close(descriptor);
    }
}

static inline void *support_shared_allocate(size_t bytes)
{
    size_t *at = mmap(NULL, bytes + 64, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        FAIL_EXIT1("mmap is refused");
    *at = bytes + 64;
    return at + 8;
}

static inline void support_shared_free(void *block)
{
    size_t *at = (size_t *)block - 8;
    munmap(at, *at);
}

#endif
