/* SPDX-License-Identifier: MIT
 *
 * A fork storm: several threads fork while all of them and more churn the heap.  fork() copies one thread and whatever
 * state the others were in; each child verifies the blocks it inherited, frees them, uses every kind of allocation, in
 * one child in eight from threads of its own and from a grandchild, and ends.  A lock that a vanished thread held shows
 * as a child that hangs, which its watchdog turns into a failure.
 */
#include "fork/heap.h"

static uint64_t seed;
static uint64_t forks_left;
static uint64_t forks_done;

static void child_main(uint64_t number)
{
    child_begin();
    churn_stop = 1;
    heap_exercise(seed + number, 150);
    inherited_check(number % 2 == 0);
    if (number % 8 == 0)
        child_threads(3);
    if (number % 16 == 0) {
        pid_t grandchild = fork();
        CHECK(grandchild >= 0);
        if (grandchild == 0) {
            child_begin();
            inherited_check(number % 2 != 0 && number % 4 != 0);
            heap_exercise(seed - number, 100);
            _exit(0);
        }
        child_reap(grandchild);
    }
    heap_exercise(seed * 3 + number, 50);
    if (number % 64 == 0)
        exit(0); /* atexit handlers and destructors, too */
    _exit(0);
}

static void *forker(void *argument)
{
    struct rng rng = {seed + (uintptr_t)argument};
    for (;;) {
        uint64_t left = __atomic_load_n(&forks_left, __ATOMIC_RELAXED);
        if (left == 0)
            return NULL;
        if (!__atomic_compare_exchange_n(&forks_left, &left, left - 1, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            continue;
        heap_exercise(rng_next(&rng), 20);
        pid_t child = fork();
        CHECK_MSG(child >= 0, "fork: errno %d", errno);
        if (child == 0)
            child_main(left * 2 + 1 - (left & 1));
        child_reap(child);
        __atomic_add_fetch(&forks_done, 1, __ATOMIC_RELAXED);
    }
}

int main(int argc, char **argv)
{
    test_begin(900);
    seed = test_seed_from(NULL);
    forks_left = test_option(argc, argv, "--forks", 2000);
    struct rng rng = {seed};
    inherited_make(&rng);
    pthread_t churners[3], forkers[3];
    for (size_t i = 0; i < 3; i++)
        CHECK(pthread_create(&churners[i], NULL, churn_main, (void *)(uintptr_t)(seed + i)) == 0);
    for (size_t i = 0; i < 3; i++)
        CHECK(pthread_create(&forkers[i], NULL, forker, (void *)(uintptr_t)i) == 0);
    for (size_t i = 0; i < 3; i++)
        CHECK(pthread_join(forkers[i], NULL) == 0);
    churn_stop = 1;
    for (size_t i = 0; i < 3; i++)
        CHECK(pthread_join(churners[i], NULL) == 0);
    inherited_check(true);
    test_say("%llu forks\n", (unsigned long long)forks_done);
    return 0;
}
