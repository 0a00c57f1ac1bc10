/* SPDX-License-Identifier: MIT
 *
 * What every unit test shares.  These programs are linked from the library's own objects: they include its private
 * headers, and their malloc is the one they test.  So a test reports without malloc (one write from a stack buffer),
 * keeps its books in memory of its own (unit_map), and fails by abort, which keeps the scene for a debugger.
 *
 * The other tests' support/check.h is for programs that know nothing of the library; its CHECK would collide with the
 * library's own.  Exit status: 0 passed, 77 skipped with a reason, anything else failed.
 */
#ifndef TESTS_UNIT_UNIT_H
#define TESTS_UNIT_UNIT_H

#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/bits.h"
#include "core/core.h"
#include "os/lock.h"
#include "rcs/rcs.h"
#include "support/rng.h"

__attribute__((format(printf, 1, 2))) static inline void unit_say(const char *format, ...)
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
        unit_say("FAILED %s:%d: ", __FILE__, __LINE__);                                                                \
        unit_say(__VA_ARGS__);                                                                                         \
        unit_say("\n");                                                                                                \
        abort();                                                                                                       \
    } while (0)

#define EXPECT(condition)                                                                                              \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            FAIL("%s", #condition);                                                                                    \
    } while (0)

#define EXPECT_MSG(condition, ...)                                                                                     \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            FAIL(__VA_ARGS__);                                                                                         \
    } while (0)

/* Whole numbers, printed when they differ. */
#define EXPECT_EQ(actual, expected)                                                                                    \
    do {                                                                                                               \
        unsigned long long actual_ = (unsigned long long)(actual), expected_ = (unsigned long long)(expected);         \
        if (actual_ != expected_)                                                                                      \
            FAIL("%s is %llu (0x%llx), not %s = %llu", #actual, actual_, actual_, #expected, expected_);               \
    } while (0)

#define SKIP(...)                                                                                                      \
    do {                                                                                                               \
        unit_say("SKIPPED: ");                                                                                         \
        unit_say(__VA_ARGS__);                                                                                         \
        unit_say("\n");                                                                                                \
        _exit(77);                                                                                                     \
    } while (0)

/* Zeroed memory that is not from the heap under test, and costs nothing until touched. */
static inline void *unit_map(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    EXPECT(p != MAP_FAILED);
    return p;
}

/* The calling thread, and those it starts. */
static inline void unit_run_on(int cpu)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET((unsigned)cpu, &one);
    EXPECT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
}

static inline void unit_stay_on_one_cpu(void)
{
    unit_run_on(sched_getcpu());
}

/* Reads "--name N" from the command line. */
static inline uint64_t unit_option(int argc, char **argv, const char *name, uint64_t otherwise)
{
    for (int i = 1; i + 1 < argc; i++)
        if (strcmp(argv[i], name) == 0)
            return strtoull(argv[i + 1], NULL, 0);
    return otherwise;
}

static inline struct rng unit_rng(void)
{
    const char *text = getenv("SUTLER_TEST_SEED");
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t seed = text != NULL ? strtoull(text, NULL, 0) : (uint64_t)now.tv_nsec * 1000003u ^ (uint64_t)now.tv_sec;
    unit_say("seed 0x%llx (repeat with SUTLER_TEST_SEED)\n", (unsigned long long)seed);
    return (struct rng){seed};
}

/* Ends a test that hangs.  Generous: it tells a hang from a slow machine. */
static inline void unit_watchdog(unsigned seconds)
{
    alarm(seconds); /* SIGALRM's default action ends the process with a status CTest reports as a failure */
}

/* Sections that fail their self-test make the library fall back, rightly; a test must not let that pass as a skip.
 * SUTLER_MANAGER=off, which keeps the manager away here, is to cost no system call that is tested. */
static inline void unit_expect_healthy(void)
{
    EXPECT(core_ready());
    os_allow_luxuries(true);
    EXPECT_MSG(rcs_verdict != rcs_selftest_failed, "the self-test of the sections failed");
}

static inline void unit_needs_rcs(void)
{
    unit_expect_healthy();
    if (sync_mode != sync_rcs)
        SKIP("no restartable sections here: verdict %d", (int)rcs_verdict);
}

/* A number of /proc/self/status, as "VmSize", in bytes. */
static inline size_t unit_status_bytes(const char *name)
{
    char line[256];
    size_t kib = 0;
    FILE *status = fopen("/proc/self/status", "r");
    EXPECT(status != NULL);
    while (fgets(line, sizeof line, status) != NULL)
        if (strncmp(line, name, strlen(name)) == 0 && line[strlen(name)] == ':')
            kib = strtoul(line + strlen(name) + 1, NULL, 10);
    fclose(status);
    return kib << 10;
}

/* A lock is held, and let go of, by a thread that does not exist: this one may go on without it. */
static inline void unit_hold(struct lock *lock)
{
    EXPECT(!lock_is_held(lock));
    atomic_store(&lock->held, 1);
}

static inline void unit_let_go(struct lock *lock)
{
    EXPECT(lock_is_held(lock));
    atomic_store(&lock->held, 0);
}

static inline void unit_print_mode(void)
{
    static const char *const name[] = {[sync_rcs] = "rcs", [sync_cpu] = "cpu"};
    unit_expect_healthy();
    unit_say("mode %s (verdict %d)\n", name[sync_mode], (int)rcs_verdict);
}

#endif
