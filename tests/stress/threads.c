/* SPDX-License-Identifier: MIT
 *
 * Many threads, short and long: 1,000 that live for a few hundred allocations each, then 1,000 alive at once.  A thread
 * inherits a block from the one before it and leaves one behind.  Every thread's exit runs pthread_key destructors that
 * malloc and free (in several rounds, as destructors may set keys again), after whatever the allocator does at thread
 * exit.  Stacks are the smallest the system allows: the allocator must not need more.
 */
#include "support/family.h"
#include "support/pattern.h"
#include "support/rng.h"
#include <limits.h>
#include <pthread.h>

#define THREADS 1000

static pthread_key_t keys[4];
static int destructors_run;
static unsigned char *legacy[THREADS + 1];
static pthread_barrier_t barrier;
static uint64_t seed;

static void destructor(void *value)
{
    size_t round = *(size_t *)value;
    free(value);
    unsigned char *block = malloc(100 + round * 1000);
    CHECK(block != NULL);
    memset(block, 1, 100 + round * 1000);
    free(block);
    free(calloc(1, 70000));
    __atomic_add_fetch(&destructors_run, 1, __ATOMIC_RELAXED);
    if (round > 0) {
        size_t *again = malloc(sizeof *again);
        CHECK(again != NULL);
        *again = round - 1;
        pthread_setspecific(keys[round % 4], again);
    }
}

static void churn(struct rng *rng, int steps)
{
    unsigned char *blocks[32] = {NULL};
    size_t sizes[32] = {0};
    for (int i = 0; i < steps; i++) {
        size_t slot = rng_below(rng, 32);
        if (blocks[slot] != NULL)
            pattern_verify(blocks[slot], sizes[slot], slot);
        free(blocks[slot]);
        sizes[slot] = rng_size(rng, 13);
        blocks[slot] = malloc(sizes[slot]);
        CHECK(blocks[slot] != NULL);
        pattern_fill(blocks[slot], sizes[slot], slot);
    }
    for (size_t slot = 0; slot < 32; slot++)
        free(blocks[slot]);
}

static void inherit(size_t number)
{
    if (legacy[number] != NULL) {
        pattern_verify(legacy[number], 500, number);
        free(legacy[number]);
    }
    legacy[number + 1] = malloc(500);
    CHECK(legacy[number + 1] != NULL);
    pattern_fill(legacy[number + 1], 500, number + 1);
}

static void *short_life(void *argument)
{
    size_t number = (size_t)(uintptr_t)argument;
    struct rng rng = {seed + number};
    inherit(number);
    churn(&rng, 300);
    size_t *rounds = malloc(sizeof *rounds);
    CHECK(rounds != NULL);
    *rounds = 3;
    pthread_setspecific(keys[0], rounds);
    if (number % 3 == 0)
        pthread_exit(NULL);
    return NULL;
}

static void *all_at_once(void *argument)
{
    struct rng rng = {seed ^ (uintptr_t)argument};
    unsigned char *mine = malloc(2000);
    CHECK(mine != NULL);
    pattern_fill(mine, 2000, (uintptr_t)argument);
    pthread_barrier_wait(&barrier); /* now all of them live */
    churn(&rng, 200);
    pattern_verify(mine, 2000, (uintptr_t)argument);
    pthread_barrier_wait(&barrier);
    free(mine);
    return NULL;
}

int main(int argc, char **argv)
{
    test_begin(300);
    seed = test_seed_from(NULL);
    size_t repeats = test_option(argc, argv, "--repeat", 1);
    for (int i = 0; i < 4; i++)
        CHECK(pthread_key_create(&keys[i], destructor) == 0);
    pthread_attr_t small;
    CHECK(pthread_attr_init(&small) == 0);
    size_t least = (size_t)sysconf(_SC_THREAD_STACK_MIN);
    CHECK(pthread_attr_setstacksize(&small, least < 32 * KIB ? 32 * KIB : least) == 0);
    for (size_t repeat = 0; repeat < repeats; repeat++) {
        destructors_run = 0;
        for (size_t i = 0; i < THREADS; i++) {
            pthread_t thread;
            CHECK(pthread_create(&thread, i % 2 ? &small : NULL, short_life, (void *)(uintptr_t)i) == 0);
            CHECK(pthread_join(thread, NULL) == 0);
        }
        pattern_verify(legacy[THREADS], 500, THREADS);
        free(legacy[THREADS]);
        memset(legacy, 0, sizeof legacy);
        CHECK_MSG(destructors_run == THREADS * 4, "%d destructors ran", destructors_run);

        static pthread_t threads[THREADS];
        CHECK(pthread_barrier_init(&barrier, NULL, THREADS) == 0);
        for (size_t i = 0; i < THREADS; i++) {
            int error = pthread_create(&threads[i], &small, all_at_once, (void *)(uintptr_t)i);
            if (error == EAGAIN)
                SKIP("the system allows only %zu threads", i);
            CHECK_MSG(error == 0, "thread %zu: error %d", i, error);
        }
        for (size_t i = 0; i < THREADS; i++)
            CHECK(pthread_join(threads[i], NULL) == 0);
        pthread_barrier_destroy(&barrier);
    }
    return 0;
}
