/* SPDX-License-Identifier: MIT
 *
 * Blocks on the move: N threads allocate, write every byte, and swap the block through a shared table for one that
 * another thread made, whose every byte they verify before they free it.  Nearly all frees are remote; a block lost,
 * doubled or written by the allocator while live shows at the next verify.  Runs with 1 thread up to far more threads
 * than cpus, because which heap a thread finds itself on then changes all the time.
 */
#include "support/family.h"
#include "support/pattern.h"
#include "support/rng.h"
#include "support/shadow.h"
#include <pthread.h>

struct parcel {
    uint64_t key;
    size_t size;
    size_t usable;
    unsigned char content[];
};

#define TABLE_SIZE 4096

static struct parcel *table[TABLE_SIZE];
static uint64_t seed;
static uint64_t rounds;

static struct parcel *parcel_make(struct rng *rng)
{
    size_t size = sizeof(struct parcel) + rng_size(rng, rng_below(rng, 100) == 0 ? 18 : 11);
    struct parcel *parcel = malloc(size);
    CHECK(parcel != NULL);
    size_t usable = malloc_usable_size(parcel);
    shadow_claim(parcel, usable);
    parcel->key = rng_next(rng);
    parcel->size = size - sizeof(struct parcel);
    parcel->usable = usable;
    pattern_fill(parcel->content, parcel->size, parcel->key);
    return parcel;
}

static void parcel_end(struct parcel *parcel)
{
    pattern_verify(parcel->content, parcel->size, parcel->key);
    shadow_release(parcel, parcel->usable);
    free(parcel);
}

static void *trader(void *argument)
{
    struct rng rng = {seed + (uintptr_t)argument * 0x632be5ab};
    for (uint64_t i = 0; i < rounds; i++) {
        struct parcel *made = parcel_make(&rng);
        struct parcel *taken =
            __atomic_exchange_n(&table[rng_below(&rng, TABLE_SIZE)], made, __ATOMIC_ACQ_REL);
        if (taken != NULL)
            parcel_end(taken);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    test_begin(600);
    seed = test_seed_from(NULL);
    uint64_t total = test_option(argc, argv, "--ops", 1000000);
    size_t most = test_option(argc, argv, "--threads", 64);
    shadow_create();
    static pthread_t threads[1024];
    CHECK(most <= 1024);
    for (size_t count = 1; count <= most; count *= 2) {
        rounds = total / count;
        for (size_t t = 0; t < count; t++)
            CHECK(pthread_create(&threads[t], NULL, trader, (void *)(uintptr_t)t) == 0);
        for (size_t t = 0; t < count; t++)
            CHECK(pthread_join(threads[t], NULL) == 0);
        for (size_t i = 0; i < TABLE_SIZE; i++) {
            if (table[i] != NULL)
                parcel_end(table[i]);
            table[i] = NULL;
        }
        test_say("%zu threads: done\n", count);
    }
    return 0;
}
