/* SPDX-License-Identifier: MIT
 *
 * Why: one thread allocates, another frees: every free is remote, the case a local heap is worst at and Hoard's blowup
 * argument is about.  Threads come in pairs, each pair with a ring of its own.  The ring publishes its ends in groups
 * of 32 so that passing a pointer costs little beside what is measured; a side with nothing to do spins a little and
 * then yields, so that more threads than cpus make progress too.  An operation is one block's whole way.
 *
 * A block carries its number; the consumer checks that they arrive complete and in order.
 */
#include "args.h"
#include "clock.h"
#include "memory.h"
#include "result.h"
#include "team.h"

#include <sched.h>
#include <stdlib.h>

enum { RING = 1024, GROUP = 32, SPINS = 100 };

struct params {
    uint64_t threads, size, ops;
    struct ring *rings;
};

struct ring {
    uint64_t *block[RING];
    uint64_t x_head __attribute__((aligned(128))); /* blocks put in, written by the producer */
    uint64_t x_tail __attribute__((aligned(128))); /* blocks taken out, written by the consumer */
} __attribute__((aligned(128)));

static void pause_for(unsigned *spins)
{
    if (++*spins % SPINS == 0)
        sched_yield();
    else
        cpu_relax();
}

static void produce(struct worker *worker, struct ring *ring, const struct params *params)
{
    uint64_t room_until = RING;
    for (uint64_t i = 0; i < params->ops; i++) {
        for (unsigned spins = 0; i == room_until; pause_for(&spins))
            room_until = __atomic_load_n(&ring->x_tail, __ATOMIC_ACQUIRE) + RING;
        uint64_t *block = malloc(params->size);
        *block = i;
        ring->block[i % RING] = block;
        if ((i + 1) % GROUP == 0 || i + 1 == params->ops)
            __atomic_store_n(&ring->x_head, i + 1, __ATOMIC_RELEASE);
    }
    worker->ops = 0; /* counted where the block ends its way */
}

static void consume(struct worker *worker, struct ring *ring, const struct params *params)
{
    uint64_t ready_until = 0;
    uint64_t errors = 0;
    for (uint64_t i = 0; i < params->ops; i++) {
        for (unsigned spins = 0; i == ready_until; pause_for(&spins))
            ready_until = __atomic_load_n(&ring->x_head, __ATOMIC_ACQUIRE);
        uint64_t *block = ring->block[i % RING];
        errors += *block != i;
        free(block);
        if ((i + 1) % GROUP == 0)
            __atomic_store_n(&ring->x_tail, i + 1, __ATOMIC_RELEASE);
    }
    worker->ops = params->ops;
    worker->errors = errors;
}

static void pass_work(struct worker *worker)
{
    const struct params *params = worker->team->params;
    struct ring *ring = &params->rings[worker->index / 2];
    if (worker->index % 2)
        consume(worker, ring, params);
    else
        produce(worker, ring, params);
}

int main(int argc, char **argv)
{
    struct params params = {.threads = 2, .size = 64, .ops = 8000000};
    const struct arg args[] = {
        {"threads", ARG_COUNT, &params.threads, "threads, an even number: half produce, half consume"},
        {"size", ARG_COUNT, &params.size, "bytes of a block, at least 8"},
        {"ops", ARG_COUNT, &params.ops, "blocks passed per pair of threads"},
    };
    ARGS_READ("producer_consumer", argc, argv, args);
    if (!params.threads || params.threads % 2 || params.size < 8)
        args_reject("threads, size", "an even number of threads, size at least 8");
    params.rings = pages_map(params.threads / 2 * sizeof(struct ring));
    const struct team team = {.threads = params.threads, .work = pass_work, .params = &params};
    struct outcome outcome = team_run(&team);
    result_begin("producer_consumer", params.threads, outcome.ops, outcome.ns);
    result_count("size", params.size);
    return result_end(outcome.errors);
}
