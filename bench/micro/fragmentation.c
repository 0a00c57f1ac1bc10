/* SPDX-License-Identifier: MIT
 *
 * Why: the 2013 report scores fragmentation as memory the program needs over memory the allocator took, 1.0 being
 * perfect, for four shapes of work.  `needs` is the bytes the program asked for and holds, but at least 4 KiB (so the
 * report: which makes the score meaningless, and says so, for shapes that hold a few bytes: scratch and thrash).
 * `took` is the growth of resident anonymous memory between the moment all threads exist and the moment when all of
 * them hold their most.
 *
 *   shape=larson      every thread has replaced random blocks of random sizes many times
 *   shape=threadtest  every thread has allocated and freed its share of small objects many times, and holds them again
 *   shape=thrash      every thread has allocated and freed one 8-byte object many times, and holds it
 *   shape=scratch     the same, after freeing an object that the main thread gave it
 *
 * Nothing here is a timing; `seconds` is only how long it took.
 */
#define _GNU_SOURCE
#include "args.h"
#include "clock.h"
#include "memory.h"
#include "result.h"
#include "slots.h"
#include "team.h"

#include <pthread.h>
#include <string.h>

static struct params {
    uint64_t threads, blocks, size, max, rounds;
    const char *shape;
} params = {.threads = 2, .blocks = 0, .size = 8, .max = 1000, .rounds = 50, .shape = "larson"};

static pthread_barrier_t all_threads_exist;
static uint64_t before_kib, holding_kib;
static uint64_t live_bytes; /* of all workers, summed with atomics outside any interval */
static struct slots *tables;
static void **given; /* shape=scratch: the main thread's objects, one for each worker */
static uint32_t x_read;

static uint64_t replace_random_blocks(struct slots *slots, struct worker *worker)
{
    slots->random = &worker->random;
    slots_open(slots);
    for (uint64_t i = 0; i < params.rounds * params.blocks; i++)
        slots_step(slots);
    uint64_t live = 0;
    for (uint64_t i = 0; i < slots->count; i++)
        live += slots->slot[i].size;
    return live;
}

/* Frees and allocates everything `rounds` times; sizes do not vary. */
static uint64_t refill_all(struct slots *slots, struct worker *worker)
{
    slots->random = &worker->random;
    slots_open(slots);
    for (uint64_t round = 0; round < params.rounds; round++) {
        for (uint64_t i = 0; i < slots->count; i++)
            free(slots->slot[i].block);
        for (uint64_t i = 0; i < slots->count; i++) {
            slots->slot[i].block = malloc(params.size);
            *slots->slot[i].block = slots_mark(i, params.size);
        }
    }
    return slots->count * params.size;
}

static void fragmentation_setup(struct worker *worker)
{
    struct slots *slots = &tables[worker->index];
    bool random_sizes = !strcmp(params.shape, "larson");
    slots->count = params.blocks;
    slots->min = params.size;
    slots->max = random_sizes ? params.max : params.size;
    slots->touch = params.max; /* what is asked for is used: otherwise untouched pages would look like thrift */
    pthread_barrier_wait(&all_threads_exist);
    if (worker->index == 0) {
        memory_anonymous_kib(); /* touches the stack it needs */
        before_kib = memory_anonymous_kib();
    }
    pthread_barrier_wait(&all_threads_exist);
    free(given[worker->index]);
    uint64_t live = random_sizes ? replace_random_blocks(slots, worker) : refill_all(slots, worker);
    __atomic_fetch_add(&live_bytes, live, __ATOMIC_RELAXED);
    worker->ops = params.rounds * params.blocks;
}

/* All workers hold their blocks now; one reads, the others wait for it. */
static void fragmentation_work(struct worker *worker)
{
    if (worker->index == 0) {
        holding_kib = memory_anonymous_kib();
        __atomic_store_n(&x_read, 1, __ATOMIC_RELEASE);
    }
    while (!__atomic_load_n(&x_read, __ATOMIC_ACQUIRE))
        clock_sleep_ms(1);
}

static void fragmentation_finish(struct worker *worker)
{
    worker->errors = slots_close(&tables[worker->index]);
}

int main(int argc, char **argv)
{
    const struct arg args[] = {
        {"threads", ARG_COUNT, &params.threads, "threads"},
        {"shape", ARG_TEXT, &params.shape, "larson, threadtest, scratch or thrash"},
        {"blocks", ARG_COUNT, &params.blocks, "blocks per thread (0: the shape's usual number)"},
        {"size", ARG_COUNT, &params.size, "bytes of a block (larson: of the smallest), at least 8"},
        {"max", ARG_COUNT, &params.max, "larson: largest block"},
        {"rounds", ARG_COUNT, &params.rounds, "times every block is replaced"},
    };
    ARGS_READ("fragmentation", argc, argv, args);
    if (!params.blocks) {
        params.blocks = !strcmp(params.shape, "larson")       ? 10000
                        : !strcmp(params.shape, "threadtest") ? 30000
                        : !strcmp(params.shape, "scratch")    ? 1
                        : !strcmp(params.shape, "thrash")     ? 1
                                                              : 0;
    }
    if (!params.blocks)
        args_reject("shape", "larson, threadtest, scratch or thrash");
    if (!params.threads || params.threads > 4096)
        args_reject("threads", "1 to 4096");
    tables = pages_map(params.threads * sizeof(*tables));
    given = pages_map(params.threads * sizeof(*given));
    for (uint64_t i = 0; i < params.threads && !strcmp(params.shape, "scratch"); i++)
        given[i] = malloc(params.size);
    pthread_barrier_init(&all_threads_exist, NULL, (unsigned)params.threads);
    const struct team team = {.threads = params.threads,
                              .setup = fragmentation_setup,
                              .work = fragmentation_work,
                              .finish = fragmentation_finish};
    uint64_t begin_ns = clock_ns();
    struct outcome outcome = team_run(&team);
    uint64_t end_ns = clock_ns();
    uint64_t tables_kib = params.threads * ((params.blocks * sizeof(struct slot) + 4095) / 4096 * 4);
    uint64_t grown_kib = holding_kib - before_kib;
    uint64_t heap_kib = holding_kib > before_kib && grown_kib > tables_kib + 4 ? grown_kib - tables_kib : 4;
    uint64_t needed = live_bytes < 4096 ? 4096 : live_bytes;
    result_begin("fragmentation", params.threads, outcome.ops, end_ns - begin_ns);
    result_text("shape", params.shape);
    result_count("live_bytes", live_bytes);
    result_count("heap_kib", heap_kib);
    result_real("score", (double)needed / 1024.0 / (double)heap_kib);
    return result_end(outcome.errors);
}
