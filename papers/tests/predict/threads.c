/* SPDX-License-Identifier: MIT
 *
 * Threads that come and go, each with arguments of its own: all answers are right, histories are not mixed up (each
 * thread gets answers computed ahead for its own cycle), what a thread leaves is taken away, and the process ends, also
 * when main has left by pthread_exit.
 */
#include "predicted.h"

#include <pthread.h>

static uint32_t seed;

static void *briefly(void *unused)
{
    struct cycle cycle;
    cycle_begin(&cycle, __atomic_add_fetch(&seed, 1, __ATOMIC_RELAXED));
    cycle_calls(&cycle, 700);
    return unused;
}

static void *until_hit(void *unused)
{
    struct cycle cycle;
    cycle_begin(&cycle, __atomic_add_fetch(&seed, 1, __ATOMIC_RELAXED));
    uint64_t before = counts_of("sin").threads;
    cycle_until_hit(&cycle);
    CHECK(counts_of("sin").threads > 0 && counts_of("sin").threads >= before);
    return unused;
}

static void run(void *(*function)(void *), size_t count)
{
    pthread_t threads[8];
    CHECK(count <= 8);
    for (size_t i = 0; i < count; i++)
        CHECK(pthread_create(&threads[i], NULL, function, NULL) == 0);
    for (size_t i = 0; i < count; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
}

static size_t mapped_mib(void)
{
    unsigned long pages;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file != NULL && fscanf(file, "%lu", &pages) == 1);
    fclose(file);
    return pages * (size_t)sysconf(_SC_PAGESIZE) / MIB;
}

int main(int argc, char **argv)
{
    test_begin(200);
    size_t rounds = test_option(argc, argv, "--rounds", 30);
    run(until_hit, 3);
    run(briefly, 8);
    size_t before = mapped_mib();
    for (size_t i = 0; i < rounds; i++)
        run(briefly, 8);
    CHECK_MSG(counts_of("sin").threads > rounds * 4, "the threads were not predicted for");
    /* A client maps about 3 MiB; the C library keeps some stacks. */
    CHECK_MSG(mapped_mib() < before + 200, "%zu MiB are mapped, %zu were", mapped_mib(), before);
    run(until_hit, 1);
    if (test_option(argc, argv, "--leave", 0) == 0)
        return 0;
    pthread_t last;
    CHECK(pthread_create(&last, NULL, until_hit, NULL) == 0);
    pthread_exit(NULL);
}
