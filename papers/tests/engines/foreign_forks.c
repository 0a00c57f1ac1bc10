/* SPDX-License-Identifier: MIT
 *
 * Forks while threads allocate with another library's lock held.  The forking thread's handlers take that lock, after
 * the engine's handler has paused its second thread: if the lock's holder waited for that one, neither would go on.
 * Children use the heap and what they inherited; a block that one of the threads was working on may be half-written,
 * but not the heap.
 */
#include "fork/heap.h"

#include "engine.h"
#include "foreign.h"

#define SLOTS 300

static void *holder(void *argument)
{
    struct rng rng = {(uintptr_t)argument};
    void *slots[SLOTS] = {NULL};
    while (!churn_stop) {
        foreign_lock();
        for (size_t i = 0; i < 20; i++) {
            size_t slot = rng_below(&rng, SLOTS);
            free(slots[slot]);
            slots[slot] = rng_below(&rng, 4) == 0 ? calloc(1, rng_size(&rng, 13)) : malloc(rng_size(&rng, 13));
            CHECK(slots[slot] != NULL);
        }
        foreign_unlock();
        sched_yield(); /* the lock is not a fair one */
    }
    for (size_t i = 0; i < SLOTS; i++)
        free(slots[i]);
    return NULL;
}

int main(int argc, char **argv)
{
    engine_begin(300);
    uint64_t forks = test_option(argc, argv, "--forks", 100);
    struct rng rng = {test_seed_from(NULL)};
    pthread_t threads[2];
    inherited_make(&rng);
    for (uintptr_t i = 0; i < 2; i++)
        CHECK(pthread_create(&threads[i], NULL, holder, (void *)(i + 1)) == 0);
    for (uint64_t i = 0; i < forks; i++) {
        heap_exercise(i, 20);
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0) {
            engine_watchdog(60);
            foreign_lock();
            foreign_unlock();
            heap_exercise(i, 100);
            inherited_check(true);
            child_threads(1);
            _exit(0);
        }
        child_reap(child);
    }
    churn_stop = 1;
    for (size_t i = 0; i < 2; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    inherited_check(true);
    return 0;
}
