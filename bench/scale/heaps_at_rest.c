/* SPDX-License-Identifier: MIT
 *
 * Why: a server has a heap for each thread or for each processor, and most of them rest.  What does a heap cost that
 * holds one block of each size and does nothing?  Each of `threads` threads allocates one block of each of the usual
 * sizes up to `max` (steps of 16 bytes to 128, then eight a doubling), writes all of it, and waits.
 *
 * Reported is what the blocks added to resident memory and to address space, at once and after `rest_ms` in which
 * nobody calls the allocator; `system_kib` is the same by the machine's free memory, which counts what resident size
 * hides (parts of huge pages) and is disturbed by whatever else the machine does.  Both are read when all threads
 * exist, so stacks do not count.  An operation is one block; nothing here is a timing.
 */
#include "args.h"
#include "clock.h"
#include "memory.h"
#include "result.h"
#include "team.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { STEP = 16, STEPS_TO = 128, PER_DOUBLING = 8, SIZES_MAX = 256 };

static struct params {
    uint64_t threads, max, rest_ms;
    uint64_t size[SIZES_MAX], sizes;
} params = {.threads = 64, .max = 8192, .rest_ms = 200};

struct reading {
    uint64_t resident_kib, address_kib, system_free_kib;
};

static pthread_barrier_t all_here;
static struct reading empty, full, rested;
static struct gate end_of_rest;

static void sizes_list(void)
{
    for (uint64_t size = STEP, step = STEP; size <= params.max; size += step) {
        params.size[params.sizes++] = size;
        if (size >= STEPS_TO && (size & (size - 1)) == 0)
            step = size / PER_DOUBLING;
    }
}

static struct reading memory_read(void)
{
    return (struct reading){memory_anonymous_kib(), memory_address_kib(), memory_system_free_kib()};
}

static void rest_setup(struct worker *worker)
{
    unsigned char **block = worker->state = pages_map(params.sizes * sizeof(*block));
    pthread_barrier_wait(&all_here);
    if (worker->index == 0) {
        memory_read(); /* touches the stack it needs */
        empty = memory_read();
    }
    pthread_barrier_wait(&all_here);
    for (uint64_t i = 0; i < params.sizes; i++) {
        block[i] = malloc(params.size[i]);
        memset(block[i], (int)(i ^ worker->index), params.size[i]);
    }
    worker->ops = params.sizes;
}

/* All hold their blocks now; one looks, the others sleep until it has looked twice. */
static void rest_work(struct worker *worker)
{
    if (worker->index != 0) {
        gate_wait(&end_of_rest);
        return;
    }
    full = memory_read();
    clock_sleep_ms(params.rest_ms);
    rested = memory_read();
    gate_open(&end_of_rest);
}

static uint64_t block_errors(const unsigned char *block, uint64_t size, unsigned char mark)
{
    uint64_t errors = 0;
    for (uint64_t i = 0; i < size; i++)
        errors += block[i] != mark;
    return errors;
}

static void rest_finish(struct worker *worker)
{
    unsigned char **block = worker->state;
    for (uint64_t i = 0; i < params.sizes; i++) {
        worker->errors += block_errors(block[i], params.size[i], (unsigned char)(i ^ worker->index));
        free(block[i]);
    }
    pages_unmap(block, params.sizes * sizeof(*block));
}

static void report(const char *key, uint64_t from, uint64_t to)
{
    result_real(key, (double)to - (double)from);
}

int main(int argc, char **argv)
{
    const struct arg args[] = {
        {"threads", ARG_COUNT, &params.threads, "threads, each with one block of each size"},
        {"max", ARG_COUNT, &params.max, "largest size, 16 to 1G"},
        {"rest_ms", ARG_COUNT, &params.rest_ms, "time without a call of the allocator"},
    };
    ARGS_READ("heaps_at_rest", argc, argv, args);
    if (!params.threads || params.threads > 4096 || params.max < STEP || params.max > 1 << 30)
        args_reject("threads, max", "1 to 4096 threads, max 16 to 1G");
    sizes_list();
    pthread_barrier_init(&all_here, NULL, (unsigned)params.threads);
    const struct team team = {.threads = params.threads,
                              .setup = rest_setup,
                              .work = rest_work,
                              .finish = rest_finish,
                              .counted = true};
    struct outcome outcome = team_run(&team);
    uint64_t live = 0;
    for (uint64_t i = 0; i < params.sizes; i++)
        live += params.size[i];
    result_begin("heaps_at_rest", params.threads, outcome.ops, outcome.ns);
    result_count("live_kib", live * params.threads >> 10);
    report("resident_kib", empty.resident_kib, full.resident_kib);
    report("rested_kib", empty.resident_kib, rested.resident_kib);
    report("address_kib", empty.address_kib, full.address_kib);
    report("system_kib", full.system_free_kib, empty.system_free_kib);
    report("rested_system_kib", rested.system_free_kib, empty.system_free_kib);
    library_counts_print(&outcome.counts, outcome.ops);
    return result_end(outcome.errors);
}
