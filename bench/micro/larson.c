/* SPDX-License-Identifier: MIT
 *
 * Why: Larson and Krishnan's picture of a server: requests live for a while and are answered by other threads than took
 * them.  Every thread replaces random blocks of random sizes in a table; after `life` replacements it hands the table
 * to a new thread and ends, so blocks outlive the threads that allocated them and are freed elsewhere.  The main thread
 * fills all tables first, so that the first frees are remote too.
 *
 * As LFMalloc's authors found, threads that start before the clock is read bias the score upward when the main thread
 * stalls; so all first threads wait at a gate, the clock is read, and then the gate opens.  Threads are created inside
 * the interval: that is the benchmark's point.
 */
#define _GNU_SOURCE
#include "args.h"
#include "clock.h"
#include "memory.h"
#include "result.h"
#include "sched_counts.h"
#include "slots.h"
#include "team.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>

static struct params {
    uint64_t threads, min, max, blocks, life, ms;
} params = {.threads = 2, .min = 8, .max = 1000, .blocks = 1000, .life = 100000, .ms = 300};

/* One table and the line of threads that own it in turn. */
struct chain {
    struct slots slots;
    struct random_source random;
    uint64_t replacements;
    uint64_t threads;
    bool waits_at_gate;
} __attribute__((aligned(128)));

static struct gate start_gate;
static uint32_t x_stop;
static sem_t chains_ended;
static pthread_attr_t detached;

static void *larson_thread(void *argument);

static void thread_start(struct chain *chain)
{
    pthread_t thread;
    int error = pthread_create(&thread, &detached, larson_thread, chain);
    if (error) {
        fprintf(stderr, "larson: pthread_create: %s\n", strerror(error));
        exit(3);
    }
}

static void *larson_thread(void *argument)
{
    struct chain *chain = argument;
    if (chain->waits_at_gate) {
        chain->waits_at_gate = false;
        gate_wait(&start_gate);
    }
    chain->threads++;
    uint64_t done = 0;
    while (!__atomic_load_n(&x_stop, __ATOMIC_RELAXED) && (!params.life || done < params.life)) {
        slots_step(&chain->slots);
        done++;
    }
    chain->replacements += done;
    if (__atomic_load_n(&x_stop, __ATOMIC_RELAXED))
        sem_post(&chains_ended);
    else
        thread_start(chain);
    return NULL;
}

static void chain_fill(struct chain *chain, uint64_t index)
{
    random_seed(&chain->random, args_seed() * 1000003 + index);
    chain->slots.count = params.blocks;
    chain->slots.min = params.min;
    chain->slots.max = params.max;
    chain->slots.touch = 8;
    chain->slots.random = &chain->random;
    slots_open(&chain->slots);
    for (uint64_t i = 0; i < params.blocks; i++)
        slots_step(&chain->slots);
    chain->waits_at_gate = true;
}

int main(int argc, char **argv)
{
    const struct arg args[] = {
        {"threads", ARG_COUNT, &params.threads, "threads alive at a time"},
        {"min", ARG_COUNT, &params.min, "smallest block, at least 8"},
        {"max", ARG_COUNT, &params.max, "largest block"},
        {"blocks", ARG_COUNT, &params.blocks, "blocks per thread"},
        {"life", ARG_COUNT, &params.life, "replacements before a thread hands over to a new one (0: never)"},
        {"ms", ARG_COUNT, &params.ms, "length of the interval"},
    };
    ARGS_READ("larson", argc, argv, args);
    if (!params.threads || params.threads > 4096 || !params.ms)
        args_reject("threads, ms", "1 to 4096 threads, at least 1 ms");
    sem_init(&chains_ended, 0, 0);
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&detached, 256 * 1024);
    struct chain *chains = pages_map(params.threads * sizeof(*chains));
    for (uint64_t i = 0; i < params.threads; i++)
        chain_fill(&chains[i], i);
    for (uint64_t i = 0; i < params.threads; i++)
        thread_start(&chains[i]);
    gate_await_waiters(&start_gate, (uint32_t)params.threads);
    uint64_t begin_ns = clock_ns();
    gate_open(&start_gate);
    clock_sleep_ms(params.ms);
    uint64_t end_ns = clock_ns();
    __atomic_store_n(&x_stop, 1, __ATOMIC_RELAXED);
    for (uint64_t i = 0; i < params.threads; i++) {
        while (sem_wait(&chains_ended))
            ;
    }
    uint64_t replacements = 0, threads = 0, errors = 0;
    for (uint64_t i = 0; i < params.threads; i++) {
        replacements += chains[i].replacements;
        threads += chains[i].threads;
        errors += slots_close(&chains[i].slots);
    }
    result_begin("larson", params.threads, replacements, end_ns - begin_ns);
    result_count("min", params.min);
    result_count("max", params.max);
    result_count("blocks", params.blocks);
    result_count("threads_created", threads);
    result_real("ops_per_second", (double)replacements * 1e9 / (double)(end_ns - begin_ns));
    sched_counts_print(&(struct sched_counts){0});
    return result_end(errors);
}
