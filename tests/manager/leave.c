/* SPDX-License-Identifier: MIT
 *
 * Every way a process can end, while the manager is busy.  The kernel ends a process when its last thread has left, and
 * the C library calls exit() when the last thread it knows of has: neither may wait for a thread the program does not
 * know of.  Each way is gone at random moments of growing and purging; the parent sees the status the same program has
 * without a manager, and a process that stays behind as a zombie leader with a manager in it shows as a hang.
 */
#include "watch.h"
#include <pthread.h>

static struct rng rng;

/* Grows and shrinks to a random moment at which the manager works: it provides, purges, or both. */
static void make_busy(void)
{
    manager_start(&rng);
    for (size_t i = rng_below(&rng, 4); i > 0; i--) {
        hoard_grow(&rng, 20 * MIB);
        hoard_drop(1 + rng_below(&rng, 8));
    }
    if (rng_below(&rng, 2) == 0)
        sleep_us((unsigned)rng_below(&rng, 900000)); /* into a purge */
    hoard_grow(&rng, rng_below(&rng, 30 * MIB)); /* into provision */
}

static void *worker(void *argument)
{
    struct rng own = {(uintptr_t)argument};
    void *blocks[256] = {NULL};
    for (int i = 0; i < 60000; i++) {
        size_t slot = rng_below(&own, 256);
        free(blocks[slot]);
        blocks[slot] = malloc(rng_size(&own, 14));
        CHECK(blocks[slot] != NULL);
    }
    for (size_t i = 0; i < 256; i++)
        free(blocks[i]);
    return NULL;
}

static void start_workers(void)
{
    pthread_t thread;
    for (uintptr_t i = 1; i <= 2; i++)
        CHECK(pthread_create(&thread, NULL, worker, (void *)(i + rng_next(&rng))) == 0 && pthread_detach(thread) == 0);
}

static void at_exit(void)
{
    hoard_grow(&rng, 4 * MIB);
    hoard_drop(0);
    _exit(5); /* seen: handlers ran, and the heap still worked in them */
}

/* ---- the ways; each says how it shall be seen from outside ---- */

static void by_exit(void)
{
    exit(3);
}

static void by_exit_handlers(void)
{
    CHECK(atexit(at_exit) == 0);
    exit(3);
}

static void by_exit_group(void)
{
    _exit(4);
}

/* The last thread of the C library's own count calls exit(0). */
static void by_pthread_exit(void)
{
    CHECK(atexit(at_exit) == 0);
    pthread_exit(NULL);
}

static void by_pthread_exit_before_others(void)
{
    CHECK(atexit(at_exit) == 0);
    start_workers();
    pthread_exit(NULL);
}

/* The process ends with its last thread; its status is that thread's or, before Linux 5.17, its first thread's. */
static void by_raw_exit(void)
{
    syscall(SYS_exit, 6);
}

static void by_raw_exit_before_others(void)
{
    start_workers();
    syscall(SYS_exit, 6);
}

static void *raw_exit_later(void *argument)
{
    worker(argument);
    syscall(SYS_exit, 6);
    return NULL;
}

static void by_raw_exits_of_all(void)
{
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, raw_exit_later, (void *)(uintptr_t)1) == 0);
    syscall(SYS_exit, 6);
}

static void by_signal(void)
{
    raise(SIGKILL);
}

static void by_exec(void)
{
    execl("/bin/sh", "sh", "-c", "exit 8", NULL);
    FAIL("cannot start a shell: errno %d", errno);
}

static void *exec_thread(void *argument)
{
    (void)argument;
    by_exec();
    return NULL;
}

static void by_exec_of_a_thread(void)
{
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, exec_thread, NULL) == 0);
    for (;;)
        hoard_grow(&rng, 100);
}

static const struct {
    const char *name;
    void (*leave)(void);
    int status;
} ways[] = {
    {"exit", by_exit, 3},
    {"exit with handlers", by_exit_handlers, 5},
    {"_exit", by_exit_group, 4},
    {"pthread_exit", by_pthread_exit, 5},
    {"pthread_exit before others", by_pthread_exit_before_others, 5},
    {"raw exit", by_raw_exit, 6},
    {"raw exit before others", by_raw_exit_before_others, 6},
    {"raw exits of all", by_raw_exits_of_all, 6},
    {"signal", by_signal, 128 + SIGKILL},
    {"exec", by_exec, 8},
    {"exec of a thread", by_exec_of_a_thread, 8},
};
#define WAYS (sizeof ways / sizeof ways[0])

static size_t way;
static unsigned settle_ms;

/* Those that nobody is told of but by the kernel. */
static bool is_raw(size_t i)
{
    return strstr(ways[i].name, "raw") != NULL;
}

static void leave(uint64_t seed)
{
    rng.state = seed;
    make_busy();
    if (settle_ms > 0) {
        hoard_drop(0);
        sleep_us(settle_ms * 1000); /* the manager sleeps by now */
    }
    ways[way].leave();
    FAIL("still here after %s", ways[way].name);
}

int main(int argc, char **argv)
{
    test_begin(0); /* the children have watchdogs of their own; a zombie leader has none: */
    test_watchdog((unsigned)test_option(argc, argv, "--seconds", 50));
    uint64_t seed = test_seed_from(NULL), rounds = test_option(argc, argv, "--rounds", 3);
    settle_ms = (unsigned)test_option(argc, argv, "--settle-ms", 0);
    bool raw_only = test_option(argc, argv, "--raw-only", 0) != 0;
    for (uint64_t round = 0; round < rounds; round++)
        for (way = 0; way < WAYS; way++) {
            if (raw_only && !is_raw(way))
                continue;
            int status = in_child(leave, seed + round * WAYS + way);
            int or_status = ways[way].leave == by_raw_exit_before_others ? 0 : ways[way].status;
            CHECK_MSG(status == ways[way].status || status == or_status, "%s: ended with %d, not %d (round %d)",
                      ways[way].name, status, ways[way].status, (int)round);
        }
    return 0;
}
