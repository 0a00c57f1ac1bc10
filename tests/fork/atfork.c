/* SPDX-License-Identifier: MIT
 *
 * The program's own pthread_atfork handlers allocate and free, in prepare, parent and child, registered before and
 * after the library's; threads start while forks run; a fork inside a signal handler's thread.  The library's handlers
 * must be the last to lock and the first to unlock, or this deadlocks.
 */
#include "fork/heap.h"

static uint64_t seed;
static int prepared, in_parent, in_child;

static void use_heap(int *counter)
{
    void *blocks[40];
    for (size_t i = 0; i < 40; i++)
        CHECK((blocks[i] = malloc(i * i * 50)) != NULL);
    for (size_t i = 0; i < 40; i++)
        free(blocks[i]);
    __atomic_add_fetch(counter, 1, __ATOMIC_RELAXED);
}

static void prepare(void)
{
    use_heap(&prepared);
}

static void parent(void)
{
    use_heap(&in_parent);
}

static void child(void)
{
    use_heap(&in_child);
}

__attribute__((constructor(102))) static void register_early(void)
{
    CHECK(pthread_atfork(prepare, parent, child) == 0);
}

static void *starter(void *argument)
{
    while (!churn_stop) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, child_thread, argument) == 0);
        void *block;
        CHECK(pthread_join(thread, &block) == 0);
        free(block);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    test_begin(300);
    seed = test_seed_from(NULL);
    uint64_t forks = test_option(argc, argv, "--forks", 300);
    CHECK(pthread_atfork(prepare, parent, child) == 0);
    struct rng rng = {seed};
    inherited_make(&rng);
    pthread_t threads[2];
    CHECK(pthread_create(&threads[0], NULL, churn_main, (void *)(uintptr_t)seed) == 0);
    CHECK(pthread_create(&threads[1], NULL, starter, (void *)(uintptr_t)seed) == 0);
    for (uint64_t i = 0; i < forks; i++) {
        pid_t made = fork();
        CHECK(made >= 0);
        if (made == 0) {
            child_begin();
            CHECK(in_child == 2);
            inherited_check(true);
            child_threads(2);
            _exit(0);
        }
        child_reap(made);
    }
    CHECK(prepared == (int)forks * 2 && in_parent == (int)forks * 2 && in_child == 0);
    churn_stop = 1;
    for (size_t i = 0; i < 2; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    inherited_check(true);
    return 0;
}
