/* SPDX-License-Identifier: MIT
 *
 * Why: what a free costs if the block is another thread's, and there are many others.  `threads` threads are alive; in
 * each round all but one allocate `blocks` blocks, and then that one frees them, a block of each owner in turn, so that
 * hardly two frees in a row meet the same owner.  In the next round the owners find what came back.
 *
 * The one runs on one cpu and the owners on another, where there are two: so the blocks are foreign to it where heaps
 * belong to processors as well.  Phases are kept apart by a barrier and timed on their own: an operation is a free;
 * `malloc_ns` is the owners' part, in processor time.
 */
#define _GNU_SOURCE
#include "args.h"
#include "clock.h"
#include "cpus.h"
#include "memory.h"
#include "result.h"
#include "team.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

static struct params {
    uint64_t threads, blocks, size, rounds;
} params = {.threads = 64, .blocks = 200, .size = 64, .rounds = 50};

static pthread_barrier_t phase;
static uint64_t **table; /* owners x blocks */
static uint64_t free_ns, x_malloc_ns;
static int cpus[2];
static bool has_two_cpus;

static uint64_t thread_cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t mark_of(uint64_t owner, uint64_t number, uint64_t round)
{
    return (owner << 40 | number << 16) ^ round;
}

static void free_all(struct worker *worker, uint64_t round)
{
    const uint64_t owners = params.threads - 1;
    uint64_t begin_ns = clock_ns();
    for (uint64_t i = 0; i < params.blocks; i++)
        for (uint64_t owner = 0; owner < owners; owner++) {
            uint64_t *block = table[owner * params.blocks + i];
            worker->errors += *block != mark_of(owner, i, round);
            free(block);
        }
    free_ns += clock_ns() - begin_ns;
    worker->ops += owners * params.blocks;
}

static void allocate_all(uint64_t owner, uint64_t round)
{
    uint64_t begin_ns = thread_cpu_ns();
    for (uint64_t i = 0; i < params.blocks; i++) {
        uint64_t *block = malloc(params.size);
        *block = mark_of(owner, i, round);
        table[owner * params.blocks + i] = block;
    }
    __atomic_fetch_add(&x_malloc_ns, thread_cpu_ns() - begin_ns, __ATOMIC_RELAXED);
}

static void remote_setup(struct worker *worker)
{
    if (has_two_cpus)
        cpu_of_thread_set(0, cpus[worker->index == 0]);
}

static void remote_work(struct worker *worker)
{
    for (uint64_t round = 0; round < params.rounds; round++) {
        if (worker->index != 0)
            allocate_all(worker->index - 1, round);
        pthread_barrier_wait(&phase);
        if (worker->index == 0)
            free_all(worker, round);
        pthread_barrier_wait(&phase);
    }
}

int main(int argc, char **argv)
{
    const struct arg args[] = {
        {"threads", ARG_COUNT, &params.threads, "threads alive, at least 2"},
        {"blocks", ARG_COUNT, &params.blocks, "blocks of each owner, a round"},
        {"size", ARG_COUNT, &params.size, "bytes of a block, at least 8"},
        {"rounds", ARG_COUNT, &params.rounds, "rounds"},
    };
    ARGS_READ("remote_free", argc, argv, args);
    if (params.threads < 2 || params.threads > 4096 || params.size < 8 || !params.blocks || !params.rounds)
        args_reject("threads, size, blocks, rounds", "2 to 4096 threads, size at least 8, a block and a round");
    has_two_cpus = cpus_two(cpus);
    const size_t table_bytes = (params.threads - 1) * params.blocks * sizeof(*table);
    table = pages_map(table_bytes);
    pthread_barrier_init(&phase, NULL, (unsigned)params.threads);
    const struct team team = {
        .threads = params.threads, .setup = remote_setup, .work = remote_work, .counted = true};
    struct outcome outcome = team_run(&team);
    pages_unmap(table, table_bytes);
    result_begin("remote_free", params.threads, outcome.ops, free_ns);
    result_count("size", params.size);
    result_real("malloc_ns", (double)x_malloc_ns / (double)outcome.ops);
    library_counts_print(&outcome.counts, outcome.ops);
    return result_end(outcome.errors);
}
