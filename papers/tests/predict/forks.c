/* SPDX-License-Identifier: MIT
 *
 * Forks while threads are predicted for: a child begins with one thread, gets its own second one when it asks often
 * enough, and its answers are right; so are its children's.  A child of _Fork, for which no handlers run, has no second
 * thread and does without, until its own fork (or exit, ends.cpp) shows that it is one.
 */
#include "predicted.h"

#include <pthread.h>
#include <sys/wait.h>

static uint32_t stop;

static void *caller(void *argument)
{
    struct cycle cycle;
    cycle_begin(&cycle, (uintptr_t)argument);
    while (!__atomic_load_n(&stop, __ATOMIC_RELAXED))
        cycle_call(&cycle);
    return NULL;
}

static void reap(pid_t child)
{
    int status;
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    CHECK_MSG(WIFEXITED(status) && WEXITSTATUS(status) == 0, "a child ended with status %#x", (unsigned)status);
}

static void child_main(struct cycle *cycle, size_t number)
{
    alarm(60);
    CHECK_MSG(threads_now() == 1, "a child begins with %u threads", threads_now());
    cycle_calls(cycle, 50);
    if (number % 4 == 0) {
        cycle_until_hit(cycle);
        CHECK(threads_now() == 2);
        pid_t grandchild = fork();
        if (grandchild == 0) {
            alarm(60);
            cycle_calls(cycle, 2000);
            _exit(0);
        }
        reap(grandchild);
    }
    if (number % 3 == 0)
        exit(0);
    _exit(0);
}

/* Its locks may be held by threads that are not there. */
static void untold_child_main(struct cycle *cycle)
{
    alarm(60);
    cycle_calls(cycle, 5000);
    pid_t grandchild = fork();
    if (grandchild == 0)
        child_main(cycle, 0);
    reap(grandchild);
    cycle_until_hit(cycle);
    _exit(0);
}

int main(int argc, char **argv)
{
    test_begin(200);
    size_t forks = test_option(argc, argv, "--forks", 40);
    struct cycle cycle;
    cycle_begin(&cycle, test_seed_from(NULL));
    cycle_until_hit(&cycle);
    pthread_t threads[2];
    for (size_t i = 0; i < 2; i++)
        CHECK(pthread_create(&threads[i], NULL, caller, (void *)(i + 1)) == 0);
    for (size_t i = 0; i < forks; i++) {
        cycle_calls(&cycle, 37);
        pid_t child = i % 5 == 4 ? _Fork() : fork();
        if (child == 0 && i % 5 != 4)
            child_main(&cycle, i);
        if (child == 0)
            untold_child_main(&cycle);
        reap(child);
    }
    cycle_until_hit(&cycle); /* the parent's second thread still works */
    __atomic_store_n(&stop, 1, __ATOMIC_RELAXED);
    for (size_t i = 0; i < 2; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    return 0;
}
