/* SPDX-License-Identifier: MIT
 *
 * What the fork tests share: a churn of threads in the parent that keeps heap locks and sections busy, blocks that the
 * child inherits and must find as they were, and the child's proof that its heap is fully usable.
 */
#ifndef TESTS_FORK_HEAP_H
#define TESTS_FORK_HEAP_H

#include "support/family.h"
#include "support/pattern.h"
#include "support/proc.h"
#include "support/rng.h"
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define INHERITED 256

static unsigned char *inherited[INHERITED];
static size_t inherited_size[INHERITED];
static volatile int churn_stop;

static inline void inherited_make(struct rng *rng)
{
    for (size_t i = 0; i < INHERITED; i++) {
        inherited_size[i] = rng_size(rng, i % 32 == 0 ? 20 : 12);
        inherited[i] = malloc(inherited_size[i]);
        CHECK(inherited[i] != NULL);
        pattern_fill(inherited[i], inherited_size[i], i);
    }
}

static inline void *churn_main(void *argument)
{
    struct rng rng = {(uintptr_t)argument};
    enum { SLOTS = 512 };
    void **slots = calloc(SLOTS, sizeof *slots);
    CHECK(slots != NULL);
    while (!churn_stop) {
        size_t slot = rng_below(&rng, SLOTS);
        free(slots[slot]);
        slots[slot] = malloc(rng_size(&rng, rng_below(&rng, 300) == 0 ? 21 : 13));
        CHECK(slots[slot] != NULL);
    }
    for (size_t i = 0; i < SLOTS; i++)
        free(slots[i]);
    free(slots);
    return NULL;
}

/* Everything a heap can be asked for, from one thread; safe in a child made by a raw clone. */
static inline void heap_exercise(uint64_t seed, int steps)
{
    struct rng rng = {seed};
    enum { SLOTS = 128 };
    unsigned char *slots[SLOTS] = {NULL};
    size_t sizes[SLOTS] = {0};
    for (int i = 0; i < steps; i++) {
        size_t slot = rng_below(&rng, SLOTS);
        size_t before = sizes[slot];
        if (slots[slot] != NULL)
            pattern_verify(slots[slot], before, slot);
        else
            before = 0;
        sizes[slot] = rng_size(&rng, i % 100 == 0 ? 20 : 12);
        if (i % 3 == 0) {
            free(slots[slot]);
            slots[slot] = calloc(1, sizes[slot]);
        } else if (i % 3 == 1 && sizes[slot] > 0) {
            slots[slot] = realloc(slots[slot], sizes[slot]);
            CHECK(slots[slot] != NULL);
            pattern_verify(slots[slot], before < sizes[slot] ? before : sizes[slot], slot);
        } else {
            free(slots[slot]);
            slots[slot] = malloc(sizes[slot]);
        }
        CHECK(slots[slot] != NULL);
        pattern_fill(slots[slot], sizes[slot], slot);
    }
    for (size_t i = 0; i < SLOTS; i++)
        free(slots[i]);
}

/* The child's copy of the parent's blocks: intact, resizable, freeable. */
static inline void inherited_check(bool free_them)
{
    for (size_t i = 0; i < INHERITED; i++) {
        pattern_verify(inherited[i], inherited_size[i], i);
        if (!free_them)
            continue;
        if (i % 4 == 0) {
            inherited[i] = realloc(inherited[i], inherited_size[i] + 100);
            CHECK(inherited[i] != NULL);
            pattern_verify(inherited[i], inherited_size[i], i);
        }
        free(inherited[i]);
        inherited[i] = NULL;
    }
}

static inline void *child_thread(void *argument)
{
    heap_exercise((uintptr_t)argument, 200);
    return malloc(100);
}

/* Threads in the child of a real fork(). */
static inline void child_threads(int count)
{
    pthread_t threads[8];
    CHECK(count <= 8);
    for (int i = 0; i < count; i++)
        CHECK(pthread_create(&threads[i], NULL, child_thread, (void *)(uintptr_t)(i + 1)) == 0);
    for (int i = 0; i < count; i++) {
        void *block;
        CHECK(pthread_join(threads[i], &block) == 0 && block != NULL);
        free(block);
    }
}

static inline void child_begin(void)
{
    test_watchdog(60); /* alarm() is not inherited, and a child that hangs must end */
}

static inline void child_reap(pid_t child)
{
    int status;
    pid_t got;
    while ((got = waitpid(child, &status, 0)) < 0 && errno == EINTR)
        continue;
    CHECK(got == child);
    CHECK_MSG(status == 0, "a child ended with wait status 0x%x", (unsigned)status);
}

#endif
