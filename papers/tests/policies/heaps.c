/* SPDX-License-Identifier: MIT
 *
 * How many heaps many threads on one cpu have: one, that cpu's; or, where the heap is chosen by a hash of the thread
 * (SUTLER_POLICY=thread), several, but no more than twice as many as there are cpus.
 */
#define SUTLER_WEAK
#include "support/check.h"
#include "sutler/sutler.h"

#include <pthread.h>
#include <sched.h>

enum { THREADS = 32 };

static pthread_barrier_t all;

static void *allocate(void *unused)
{
    (void)unused;
    pthread_barrier_wait(&all); /* all of them live at once: the stacks of some are not those of others */
    free(opaque(malloc(100)));
    pthread_barrier_wait(&all);
    return NULL;
}

int main(void)
{
    test_watchdog(60);
    if (sutler_stats_get == NULL) {
        test_say("SKIPPED: the library is not there\n");
        return 77;
    }
    cpu_set_t cpus, one;
    CHECK(sched_getaffinity(0, sizeof cpus, &cpus) == 0);
    free(opaque(malloc(100))); /* the count of cpus is taken before there is but one */
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    CHECK(sched_setaffinity(0, sizeof one, &one) == 0);
    struct sutler_stats stats;
    CHECK(sutler_stats_get(&stats, sizeof stats) == 0);
    uint64_t before = stats.heaps;
    pthread_t thread[THREADS];
    CHECK(pthread_barrier_init(&all, NULL, THREADS) == 0);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&thread[i], NULL, allocate, NULL) == 0);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(thread[i], NULL) == 0);
    CHECK(sutler_stats_get(&stats, sizeof stats) == 0);
    const char *policy = getenv("SUTLER_POLICY");
    if (policy != NULL && strcmp(policy, "thread") == 0)
        CHECK_MSG(stats.heaps > 1 && stats.heaps <= 2 * (uint64_t)CPU_COUNT(&cpus), "%llu heaps on %d cpus",
                  (unsigned long long)stats.heaps, CPU_COUNT(&cpus));
    else
        CHECK_MSG(stats.heaps <= before + 1, "%llu heaps on one cpu, %llu before", (unsigned long long)stats.heaps,
                  (unsigned long long)before);
    return 0;
}
