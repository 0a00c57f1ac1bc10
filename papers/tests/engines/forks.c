/* SPDX-License-Identifier: MIT
 *
 * Forks under churn: threads allocate and free while the main thread and another one fork.  Each child checks the
 * blocks it inherited, allocates from its first thread and from new ones (which makes the engine start a second thread
 * anew), now and then forks again, and ends; one in ten by exit().  A lock or a half-done refill that came along in the
 * snapshot shows as a hang (each child has a watchdog), a wrong byte or a crash.
 */
#include "fork/heap.h"

#include "engine.h"

static uint64_t seed;

static void child_main(uint64_t number)
{
    engine_watchdog(60);
    churn_stop = 1;
    heap_exercise(seed + number, 120);
    inherited_check(number % 2 == 0);
    if (number % 4 == 0)
        child_threads(2);
    if (number % 8 == 0) {
        pid_t grandchild = fork();
        CHECK(grandchild >= 0);
        if (grandchild == 0) {
            engine_watchdog(60);
            heap_exercise(seed - number, 100);
            _exit(0);
        }
        heap_exercise(seed ^ number, 50);
        child_reap(grandchild);
    }
    if (number % 10 == 0)
        exit(0);
    _exit(0);
}

static uint64_t forks;

static void *forker(void *argument)
{
    uint64_t first = (uintptr_t)argument;
    for (uint64_t i = 0; i < forks; i++) {
        heap_exercise(seed * i + first, 20);
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0)
            child_main(first + i * 2);
        child_reap(child);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    engine_begin(300);
    seed = test_seed_from(NULL);
    forks = test_option(argc, argv, "--forks", 200) / 2;
    uint64_t churners = test_option(argc, argv, "--churners", 2);
    struct rng rng = {seed};
    inherited_make(&rng);
    pthread_t threads[8], second;
    CHECK(churners <= 8);
    for (size_t i = 0; i < churners; i++)
        CHECK(pthread_create(&threads[i], NULL, churn_main, (void *)(uintptr_t)(seed + i)) == 0);
    CHECK(pthread_create(&second, NULL, forker, (void *)1) == 0);
    forker((void *)0);
    CHECK(pthread_join(second, NULL) == 0);
    churn_stop = 1;
    for (size_t i = 0; i < churners; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    inherited_check(true);
    return 0;
}
