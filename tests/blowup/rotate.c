/* SPDX-License-Identifier: MIT
 *
 * Ownership goes round: a fixed working set is freed and allocated anew by one thread after another, so that each heap
 * in turn holds the whole set and the others hold nothing.  An allocator that keeps what a heap once had multiplies the
 * set by the number of heaps; with a fresh thread each turn, by the number of threads that ever lived.  The second half
 * of the turns may need hardly more than the first half did.
 */
#include "blowup/measure.h"
#include <pthread.h>

#define COUNT 60000

static void *blocks[COUNT];
static size_t turns;
static uint64_t seed;
static int cpus[64], cpu_count;

static void *turn(void *argument)
{
    size_t number = (size_t)(uintptr_t)argument;
    struct rng rng = {seed + number};
    proc_pin_tid(0, cpus[number % (size_t)cpu_count]);
    /* The size class wanders too: what one turn frees the next must be able to use for another class. */
    size_t size = (size_t)64 << number % 5;
    for (size_t i = 0; i < COUNT; i++) {
        size_t where = (i * 7919) % COUNT;
        if (blocks[where] != NULL) {
            live_remove(blocks[where]);
            free(blocks[where]);
        }
        size_t length = size + rng_below(&rng, size / 4);
        blocks[where] = malloc(length);
        CHECK(blocks[where] != NULL);
        touch(blocks[where], length);
        live_add(blocks[where]);
    }
    measure_sample();
    return NULL;
}

int main(int argc, char **argv)
{
    test_begin(300);
    seed = test_seed_from(NULL);
    turns = test_option(argc, argv, "--turns", 60);
    cpu_count = proc_cpus(cpus, 64);
    measure_begin();
    size_t first_half = 0;
    for (size_t i = 0; i < turns; i++) {
        if (i == turns / 2)
            first_half = resident_peak;
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, turn, (void *)(uintptr_t)i) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
    }
    for (size_t i = 0; i < COUNT; i++)
        free(blocks[i]);
    CHECK_MSG(resident_peak <= first_half + first_half / 8 + 8 * MIB, "memory still grows: %zu KiB, then %zu KiB",
              first_half / KIB, resident_peak / KIB);
    measure_end();
    return 0;
}
