/* SPDX-License-Identifier: MIT
 *
 * What every test program shares: saying what went wrong without calling malloc.
 *
 * A test of malloc cannot report through printf: stdio allocates, and the heap may be the thing that just broke.  So a
 * failed CHECK formats into a stack buffer, writes it with one write(2) and aborts.  test_begin() does three things
 * once: it refuses to run when the library under test was expected but is not the one serving malloc (a test that
 * passes under another allocator proves nothing), it starts a watchdog so that a hang is a failure with a name, and it
 * picks and prints the seed.
 *
 * Exit status: 0 passed, 77 skipped (with a reason on stdout), anything else failed.
 */
#ifndef TESTS_CHECK_H
#define TESTS_CHECK_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define SUTLER_WEAK
#include "sutler/sutler.h"

#define TEST_SKIPPED 77

#define KIB ((size_t)1024)
#define MIB ((size_t)1024 * 1024)

/* snprintf of plain numbers and strings does not allocate in glibc or musl. */
__attribute__((format(printf, 1, 2))) static inline void test_say(const char *format, ...)
{
    char line[512];
    va_list list;
    va_start(list, format);
    int length = vsnprintf(line, sizeof line, format, list);
    va_end(list);
    if (length > (int)sizeof line - 1)
        length = (int)sizeof line - 1;
    for (int done = 0; done < length;) {
        ssize_t n = write(STDOUT_FILENO, line + done, (size_t)(length - done));
        if (n <= 0)
            break;
        done += (int)n;
    }
}

#define FAIL(...)                                                                                                      \
    do {                                                                                                               \
        test_say("FAILED %s:%d: ", __FILE__, __LINE__);                                                                \
        test_say(__VA_ARGS__);                                                                                         \
        test_say("\n");                                                                                                \
        abort();                                                                                                       \
    } while (0)

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            FAIL("%s (errno %d)", #condition, errno);                                                                  \
    } while (0)

/* CHECK with words of its own: for conditions that do not explain themselves. */
#define CHECK_MSG(condition, ...)                                                                                      \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            FAIL(__VA_ARGS__);                                                                                         \
    } while (0)

#define SKIP(...)                                                                                                      \
    do {                                                                                                               \
        test_say("SKIPPED: ");                                                                                         \
        test_say(__VA_ARGS__);                                                                                         \
        test_say("\n");                                                                                                \
        _exit(TEST_SKIPPED);                                                                                           \
    } while (0)

/* Hides a pointer's origin from the compiler, which would otherwise fold, warn about or delete what is tested. */
static inline void *opaque(void *pointer)
{
    __asm__ volatile("" : "+r"(pointer) : : "memory");
    return pointer;
}

static inline size_t opaque_size(size_t size)
{
    __asm__ volatile("" : "+r"(size));
    return size;
}

/* True when the library under test serves malloc (false under glibc or a peer). */
static inline bool test_is_sutler(void)
{
    return sutler_is_active != NULL && sutler_is_active();
}

static inline void test_watchdog_fired(int signal_number)
{
    (void)signal_number;
    static const char text[] = "FAILED: watchdog: the test hangs\n";
    ssize_t ignored = write(STDOUT_FILENO, text, sizeof text - 1);
    (void)ignored;
    signal(SIGABRT, SIG_DFL);
    abort();
}

/* A hang must be told apart from a slow machine: the limit is generous, and TEST_TIMEOUT overrides it. */
static inline void test_watchdog(unsigned seconds)
{
    const char *text = getenv("TEST_TIMEOUT");
    if (text != NULL)
        seconds = (unsigned)strtoul(text, NULL, 10);
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = test_watchdog_fired;
    sigaction(SIGALRM, &action, NULL);
    alarm(seconds);
}

static inline uint64_t test_seed_from(const char *text)
{
    uint64_t seed;
    if (text == NULL)
        text = getenv("TEST_SEED");
    if (text != NULL) {
        seed = strtoull(text, NULL, 0);
    } else {
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        seed = (uint64_t)now.tv_nsec * 1000003u ^ (uint64_t)now.tv_sec ^ (uint64_t)getpid() << 40;
    }
    test_say("seed 0x%llx (repeat with TEST_SEED)\n", (unsigned long long)seed);
    return seed;
}

static inline void test_begin(unsigned watchdog_seconds)
{
    if (getenv("TEST_EXPECT_SUTLER") != NULL)
        CHECK_MSG(test_is_sutler(), "the library under test does not serve malloc");
    const char *allowed = getenv("TEST_SECONDS"); /* by CTest: the long form of a test may take longer */
    const unsigned most = allowed != NULL ? (unsigned)strtoul(allowed, NULL, 10) : 0;
    if (watchdog_seconds != 0)
        test_watchdog(most > watchdog_seconds ? most : watchdog_seconds);
}

/* Reads "--name N" from the command line. */
static inline uint64_t test_option(int argc, char **argv, const char *name, uint64_t otherwise)
{
    for (int i = 1; i + 1 < argc; i++) {
        if (strcmp(argv[i], name) == 0)
            return strtoull(argv[i + 1], NULL, 0);
    }
    return otherwise;
}

#endif
