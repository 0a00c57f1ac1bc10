/* SPDX-License-Identifier: MIT
 *
 * Threads that allocate, check, resize and free, a share of it each other's blocks: a slot is taken by atomic exchange,
 * so whoever takes it owns the block, checks every byte against what its last owner wrote, and replaces it.  An engine
 * that hands a block out twice, links through a live block or loses a refill shows as a wrong byte, a crash or a hang.
 * Meanwhile short-lived threads come and go with blocks of their own and of others.  --cpus 1 runs all of it on one
 * cpu, where nothing may spin without end.
 */
#include "engine.h"

#include <pthread.h>
#include <sched.h>

#define SLOTS 512

struct item {
    size_t size;
    uint64_t key;
    unsigned char bytes[];
};

static struct item *shared[SLOTS];
static uint64_t seed;
static size_t steps;

static struct item *item_new(struct rng *rng)
{
    size_t size =
        rng_below(rng, 64) == 0 ? rng_below(rng, 100000) : rng_below(rng, rng_below(rng, 8) == 0 ? 4000 : 200);
    bool zeroed = rng_below(rng, 4) == 0;
    struct item *item = zeroed ? calloc(1, sizeof *item + size) : malloc(sizeof *item + size);
    CHECK(item != NULL);
    for (size_t i = 0; zeroed && i < size; i++)
        CHECK_MSG(item->bytes[i] == 0, "calloc gave a byte that is not zero at %zu", i);
    item->size = size;
    item->key = rng_next(rng);
    pattern_fill(item->bytes, size, item->key);
    return item;
}

static void item_check(const struct item *item)
{
    pattern_verify(item->bytes, item->size, item->key);
}

static struct item *item_resize(struct item *item, struct rng *rng)
{
    size_t size = rng_below(rng, 3000), before = item->size;
    item = realloc(item, sizeof *item + size);
    CHECK(item != NULL);
    pattern_expect(item->bytes, 0, before < size ? before : size, item->key);
    item->size = size;
    pattern_fill(item->bytes, size, item->key);
    return item;
}

static void step(struct rng *rng)
{
    size_t slot = rng_below(rng, SLOTS);
    struct item *item = __atomic_exchange_n(&shared[slot], NULL, __ATOMIC_ACQ_REL);
    if (item == NULL) {
        item = item_new(rng);
    } else {
        item_check(item);
        if (rng_below(rng, 4) == 0) {
            item = item_resize(item, rng);
        } else {
            free(item);
            item = item_new(rng);
        }
    }
    struct item *other = __atomic_exchange_n(&shared[slot], item, __ATOMIC_ACQ_REL);
    if (other != NULL) {
        item_check(other);
        free(other);
    }
}

/* A private stack that grows and shrinks by hundreds: empties and overfills bins, buckets and queues. */
static void burst(struct rng *rng)
{
    enum { DEPTH = 300 };
    struct item *stack[DEPTH];
    size_t size = 1 + rng_below(rng, 600), depth = 1 + rng_below(rng, DEPTH);
    for (size_t i = 0; i < depth; i++) {
        stack[i] = malloc(sizeof *stack[i] + size);
        CHECK(stack[i] != NULL);
        stack[i]->size = size;
        stack[i]->key = i;
        pattern_fill(stack[i]->bytes, size, i);
    }
    for (size_t i = depth; i-- > 0;) {
        item_check(stack[i]);
        free(stack[i]);
    }
}

static void *short_lived(void *argument)
{
    struct rng rng = {(uintptr_t)argument};
    for (size_t i = 0; i < 50; i++)
        step(&rng);
    return item_new(&rng);
}

static void *worker(void *argument)
{
    struct rng rng = {seed + (uintptr_t)argument};
    for (size_t i = 0; i < steps; i++) {
        step(&rng);
        if (i % 64 == 0)
            burst(&rng);
        if (i % 2000 == 0) {
            pthread_t thread;
            void *inherited;
            CHECK(pthread_create(&thread, NULL, short_lived, (void *)(uintptr_t)rng_next(&rng)) == 0);
            CHECK(pthread_join(thread, &inherited) == 0);
            item_check(inherited);
            free(inherited);
        }
    }
    return NULL;
}

int main(int argc, char **argv)
{
    engine_begin(300);
    if (test_option(argc, argv, "--cpus", 0) == 1) {
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(sched_getcpu(), &one);
        CHECK(sched_setaffinity(0, sizeof one, &one) == 0);
    }
    seed = test_seed_from(NULL);
    steps = test_option(argc, argv, "--steps", 20000);
    size_t count = test_option(argc, argv, "--threads", 6);
    pthread_t threads[64];
    CHECK(count <= 64);
    for (size_t i = 0; i < count; i++)
        CHECK(pthread_create(&threads[i], NULL, worker, (void *)(uintptr_t)(i * 1000)) == 0);
    for (size_t i = 0; i < count; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    for (size_t i = 0; i < SLOTS; i++) {
        if (shared[i] != NULL)
            item_check(shared[i]);
        free(shared[i]);
    }
    return 0;
}
