/* SPDX-License-Identifier: MIT
 *
 * A fork storm while the manager provides and purges.  Each child finds every block as its parent left it at that
 * moment - also those whose superblock the manager had in hand, also in children made by a raw clone, of which the
 * library hears nothing - frees them, grows, and now and then gets a manager of its own.  A lock the manager held shows
 * as a child that hangs.  In a program of one thread ("--alone 1") the manager leaves before each fork and comes back.
 */
#include "fork/heap.h"
#include "watch.h"

static struct rng rng;

/* glibc's _Fork by another name: no handlers. */
static pid_t raw_fork(void)
{
    return (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
}

static void child_main(uint64_t number, bool is_raw)
{
    child_begin();
    churn_stop = 1;
    inherited_check(number % 2 == 0);
    hoard_drop(number % 3);
    hoard_grow(&rng, 6 * MIB);
    if (number % 5 == 0)
        sutler_purge();
    if (number % 8 == 1 && !is_raw) {
        manager_start(&rng);
        hoard_drop(4);
        pid_t grandchild = fork();
        CHECK(grandchild >= 0);
        if (grandchild == 0) {
            child_begin();
            hoard_grow(&rng, 6 * MIB);
            hoard_check();
            _exit(0);
        }
        child_reap(grandchild);
    }
    hoard_drop(0);
    if (number % 16 == 2 && !is_raw)
        exit(0);
    _exit(0);
}

int main(int argc, char **argv)
{
    test_begin((unsigned)test_option(argc, argv, "--seconds", 110));
    rng.state = test_seed_from(NULL);
    uint64_t forks = test_option(argc, argv, "--forks", 150), raw = 0;
    bool alone = test_option(argc, argv, "--alone", 0) != 0;
    inherited_make(&rng);
    pid_t manager = manager_start(&rng);
    pthread_t churner;
    CHECK(alone || pthread_create(&churner, NULL, churn_main, (void *)(uintptr_t)rng.state) == 0);
    for (uint64_t i = 0; i < forks; i++) {
        /* Now growing, now shrunk long enough for the clock to purge what is left. */
        hoard_grow(&rng, rng_below(&rng, 12 * MIB));
        if (hoard_bytes > 56 * MIB)
            hoard_drop(2 + rng_below(&rng, 20));
        if (i % 24 == 23)
            sleep_us((unsigned)(700000 + rng_below(&rng, 300000)));
        bool is_raw = i % 4 == 3;
        pid_t child = is_raw ? raw_fork() : fork();
        CHECK_MSG(child >= 0, "fork: errno %d", errno);
        if (child == 0)
            child_main(i, is_raw);
        child_reap(child);
        raw += is_raw;
    }
    churn_stop = 1;
    CHECK(alone || pthread_join(churner, NULL) == 0);
    CHECK_MSG(alone || manager_of(getpid()) == manager, "the manager is not the one it was");
    hoard_check();
    hoard_drop(0);
    inherited_check(true);
    struct sutler_stats stats;
    CHECK(sutler_stats_get(&stats, sizeof stats) == 0);
    test_say("%d forks, %d of them raw; %zu MiB provided, %zu MiB purged\n", (int)forks, (int)raw,
             stats.provided_bytes / MIB, stats.purged_bytes / MIB);
    return 0;
}
