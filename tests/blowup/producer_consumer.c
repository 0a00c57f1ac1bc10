/* SPDX-License-Identifier: MIT
 *
 * One side only allocates, the other only frees, through a bounded queue: the classic that makes private heaps without
 * ownership grow for ever (Hoard's and LFMalloc's motivation).  Several pairs, sizes of several classes, phases in
 * which the size changes so that memory of one class must serve another.
 */
#include "blowup/measure.h"
#include <pthread.h>

#define QUEUE 4096

struct pair {
    void *queue[QUEUE];
    size_t head, tail; /* each written by one side */
    uint64_t count;
    uint64_t seed;
};

static void *producer(void *argument)
{
    struct pair *pair = argument;
    struct rng rng = {pair->seed};
    for (uint64_t i = 0; i < pair->count; i++) {
        size_t limit = (size_t)64 << (i * 6 / pair->count) * 2; /* six phases, 64 bytes to 64 KiB */
        size_t size = limit / 2 + rng_below(&rng, limit / 2);
        if (limit > 4096 && i % 16 != 0)
            size = 100; /* keep the live bytes in tens of MiB */
        char *block = malloc(size);
        CHECK(block != NULL);
        touch(block, size);
        live_add(block);
        while (pair->head - __atomic_load_n(&pair->tail, __ATOMIC_ACQUIRE) == QUEUE)
            sched_yield();
        pair->queue[pair->head % QUEUE] = block;
        __atomic_store_n(&pair->head, pair->head + 1, __ATOMIC_RELEASE);
        if (i % 65536 == 0)
            measure_sample();
    }
    return NULL;
}

static void *consumer(void *argument)
{
    struct pair *pair = argument;
    for (uint64_t i = 0; i < pair->count; i++) {
        while (__atomic_load_n(&pair->head, __ATOMIC_ACQUIRE) == i)
            sched_yield();
        void *block = pair->queue[i % QUEUE];
        live_remove(block);
        free(block);
        __atomic_store_n(&pair->tail, i + 1, __ATOMIC_RELEASE);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    test_begin(300);
    uint64_t seed = test_seed_from(NULL);
    static struct pair pairs[2];
    pthread_t threads[4];
    measure_begin();
    for (size_t i = 0; i < 2; i++) {
        pairs[i].count = test_option(argc, argv, "--ops", 2000000) / 2;
        pairs[i].seed = seed + i;
        CHECK(pthread_create(&threads[i], NULL, producer, &pairs[i]) == 0);
        CHECK(pthread_create(&threads[2 + i], NULL, consumer, &pairs[i]) == 0);
    }
    for (size_t i = 0; i < 4; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    measure_end();
    return 0;
}
