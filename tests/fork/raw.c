/* SPDX-License-Identifier: MIT
 *
 * Children made behind the library's back: _Fork() and a raw clone(SIGCHLD) run no pthread_atfork handler, so nothing
 * was locked or tidied before the snapshot.  The library notices by itself (a page that the kernel wipes on fork) and
 * must leave malloc and free usable.  The C library's own locks get no such care, so the child uses the heap and
 * nothing else.
 */
#include "fork/heap.h"

static uint64_t seed;

extern pid_t _Fork(void) __attribute__((weak));

static pid_t raw_clone(void)
{
#if defined(__aarch64__)
    return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
#else
    return (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
#endif
}

static void child_main(uint64_t number)
{
    child_begin();
    heap_exercise(seed + number, 200);
    inherited_check(true);
    heap_exercise(seed - number, 100);
    /* And what a real fork out of such a child leaves. */
    if (number % 16 == 0) {
        pid_t grandchild = raw_clone();
        CHECK(grandchild >= 0);
        if (grandchild == 0) {
            child_begin();
            heap_exercise(seed ^ number, 100);
            _exit(0);
        }
        child_reap(grandchild);
    }
    _exit(0);
}

int main(int argc, char **argv)
{
    test_begin(600);
    if (!test_is_sutler())
        SKIP("only the library promises a usable heap after a raw clone of a threaded process");
    seed = test_seed_from(NULL);
    uint64_t forks = test_option(argc, argv, "--forks", 600);
    struct rng rng = {seed};
    inherited_make(&rng);
    pthread_t churners[3];
    for (size_t i = 0; i < 3; i++)
        CHECK(pthread_create(&churners[i], NULL, churn_main, (void *)(uintptr_t)(seed + i)) == 0);
    for (uint64_t i = 0; i < forks; i++) {
        heap_exercise(rng_next(&rng), 20);
        pid_t child = i % 2 && _Fork != NULL ? _Fork() : raw_clone();
        CHECK_MSG(child >= 0, "clone: errno %d", errno);
        if (child == 0)
            child_main(i);
        child_reap(child);
    }
    churn_stop = 1;
    for (size_t i = 0; i < 3; i++)
        CHECK(pthread_join(churners[i], NULL) == 0);
    inherited_check(true);
    return 0;
}
