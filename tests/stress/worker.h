/* SPDX-License-Identifier: MIT
 *
 * The load that the disturbance tests disturb: a thread that allocates, writes every byte, swaps blocks with the other
 * workers and verifies and frees what it got, until told to stop.  The disturbances (migration, signals, changing cpu
 * sets) come from outside, so that each test file holds only its own.
 */
#ifndef TESTS_STRESS_WORKER_H
#define TESTS_STRESS_WORKER_H

#include "support/family.h"
#include "support/pattern.h"
#include "support/proc.h"
#include "support/rng.h"
#include "support/shadow.h"
#include <pthread.h>
#include <sys/syscall.h>

#define WORKER_MOST  64
#define WORKER_TABLE 1024

struct worker_block {
    uint64_t key;
    size_t size;
    size_t usable;
    unsigned char content[];
};

struct worker {
    pthread_t thread;
    pid_t tid;
    struct rng rng;
    uint64_t done;
};

static struct worker workers[WORKER_MOST];
static size_t worker_count;
static struct worker_block *worker_table[WORKER_TABLE];
static volatile int worker_stop;

static inline void worker_release(struct worker_block *block)
{
    pattern_verify(block->content, block->size, block->key);
    shadow_release(block, block->usable);
    free(block);
}

/* One step: make, swap, verify and free.  Also called from signal handlers, with a generator of their own. */
static inline void worker_step(struct rng *rng)
{
    size_t size = sizeof(struct worker_block) + rng_size(rng, rng_below(rng, 200) == 0 ? 17 : 10);
    struct worker_block *block = malloc(size);
    CHECK(block != NULL);
    size_t usable = malloc_usable_size(block);
    shadow_claim(block, usable);
    block->key = rng_next(rng);
    block->size = size - sizeof *block;
    block->usable = usable;
    pattern_fill(block->content, block->size, block->key);
    size_t where = rng_below(rng, WORKER_TABLE);
    struct worker_block *taken = __atomic_exchange_n(&worker_table[where], block, __ATOMIC_ACQ_REL);
    if (taken != NULL)
        worker_release(taken);
}

static inline void *worker_main(void *argument)
{
    struct worker *worker = argument;
    worker->tid = (pid_t)syscall(SYS_gettid);
    while (!worker_stop) {
        for (int i = 0; i < 64; i++)
            worker_step(&worker->rng);
        __atomic_add_fetch(&worker->done, 64, __ATOMIC_RELAXED);
    }
    return NULL;
}

static inline void workers_start(size_t count, uint64_t seed)
{
    CHECK(count <= WORKER_MOST);
    worker_stop = 0;
    worker_count = count;
    for (size_t i = 0; i < count; i++) {
        workers[i].rng.state = seed + i * 0x9e37;
        workers[i].done = 0;
        CHECK(pthread_create(&workers[i].thread, NULL, worker_main, &workers[i]) == 0);
    }
}

/* Waits until each has got on (a starved one hangs the test: nobody may wait forever under a disturbance), stops them
 * and frees what is left. */
static inline void workers_finish(void)
{
    uint64_t total = 0;
    for (size_t i = 0; i < worker_count; i++) {
        while (__atomic_load_n(&workers[i].done, __ATOMIC_RELAXED) == 0)
            sleep_us(1000);
    }
    worker_stop = 1;
    for (size_t i = 0; i < worker_count; i++) {
        CHECK(pthread_join(workers[i].thread, NULL) == 0);
        total += workers[i].done;
    }
    for (size_t i = 0; i < WORKER_TABLE; i++) {
        if (worker_table[i] != NULL)
            worker_release(worker_table[i]);
        worker_table[i] = NULL;
    }
    test_say("%zu workers did %llu steps\n", worker_count, (unsigned long long)total);
}

#endif
