/* SPDX-License-Identifier: MIT
 *
 * Why: one thread allocates, another frees: every free is remote, the case a local heap is worst at and Hoard's blowup
 * argument is about.  Threads come in pairs.  A producer serves the consumer of its pair, or (crossed=1) every consumer
 * in turn, so that the frees of one thread go to several owners; each way has a ring of its own.  A ring publishes its
 * ends in groups of 32 so that passing a pointer costs little beside what is measured; a side with nothing to do spins
 * a little and then yields, so that more threads than cpus make progress too.  An operation is one block's whole way.
 *
 * A block carries its producer and its number in the ring; the consumer checks that they arrive complete and in order.
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
    uint64_t threads, size, ops, crossed;
    uint64_t pairs, lanes, groups; /* pairs of threads; consumers a producer serves; groups a producer sends to each */
    struct ring *rings;            /* one for each lane of each producer */
};

struct ring {
    uint64_t *block[RING];
    uint64_t x_head __attribute__((aligned(128))); /* blocks put in, written by the producer */
    uint64_t room_until;                           /* the producer's: x_tail + RING when it last looked */
    uint64_t x_tail __attribute__((aligned(128))); /* blocks taken out, written by the consumer */
} __attribute__((aligned(128)));

static void pause_for(unsigned *spins)
{
    if (++*spins % SPINS == 0)
        sched_yield();
    else
        cpu_relax();
}

/* A producer's lane n leads to the n-th consumer after its own. */
static struct ring *ring_of(const struct params *params, uint64_t producer, uint64_t lane)
{
    return &params->rings[producer * params->lanes + lane];
}

static uint64_t mark_of(uint64_t producer, uint64_t number)
{
    return producer << 48 | number;
}

static void put_group(struct ring *ring, uint64_t producer, uint64_t size)
{
    uint64_t head = ring->x_head;
    for (unsigned spins = 0; head + GROUP > ring->room_until; pause_for(&spins))
        ring->room_until = __atomic_load_n(&ring->x_tail, __ATOMIC_ACQUIRE) + RING;
    for (uint64_t i = head; i < head + GROUP; i++) {
        uint64_t *block = malloc(size);
        *block = mark_of(producer, i);
        ring->block[i % RING] = block;
    }
    __atomic_store_n(&ring->x_head, head + GROUP, __ATOMIC_RELEASE);
}

static void produce(const struct params *params, uint64_t self)
{
    for (uint64_t group = 0; group < params->groups; group++)
        for (uint64_t lane = 0; lane < params->lanes; lane++)
            put_group(ring_of(params, self, lane), self, params->size);
}

/* Frees what has arrived; returns how many those were. */
static uint64_t take_arrived(struct ring *ring, uint64_t producer, uint64_t *errors)
{
    uint64_t from = ring->x_tail, until = __atomic_load_n(&ring->x_head, __ATOMIC_ACQUIRE);
    for (uint64_t i = from; i < until; i++) {
        uint64_t *block = ring->block[i % RING];
        *errors += *block != mark_of(producer, i);
        free(block);
        if ((i + 1) % GROUP == 0)
            __atomic_store_n(&ring->x_tail, i + 1, __ATOMIC_RELEASE);
    }
    return until - from;
}

static void consume(struct worker *worker, const struct params *params, uint64_t self)
{
    uint64_t errors = 0, left = params->lanes * params->groups * GROUP;
    for (unsigned spins = 0; left > 0;) {
        uint64_t arrived = 0;
        for (uint64_t lane = 0; lane < params->lanes; lane++) {
            uint64_t producer = (self + params->pairs - lane) % params->pairs;
            arrived += take_arrived(ring_of(params, producer, lane), producer, &errors);
        }
        left -= arrived;
        if (arrived == 0)
            pause_for(&spins);
    }
    worker->ops = params->lanes * params->groups * GROUP;
    worker->errors = errors;
}

static void pass_work(struct worker *worker)
{
    const struct params *params = worker->team->params;
    if (worker->index % 2)
        consume(worker, params, worker->index / 2);
    else
        produce(params, worker->index / 2);
}

int main(int argc, char **argv)
{
    struct params params = {.threads = 2, .size = 64, .ops = 8000000};
    const struct arg args[] = {
        {"threads", ARG_COUNT, &params.threads, "threads, an even number: half produce, half consume"},
        {"size", ARG_COUNT, &params.size, "bytes of a block, at least 8"},
        {"ops", ARG_COUNT, &params.ops, "blocks each producer passes on, rounded down to whole groups of 32"},
        {"crossed", ARG_COUNT, &params.crossed, "1: every producer serves every consumer"},
    };
    ARGS_READ("producer_consumer", argc, argv, args);
    if (!params.threads || params.threads % 2 || params.size < 8 || params.crossed > 1)
        args_reject("threads, size, crossed", "an even number of threads, size at least 8, crossed 0 or 1");
    params.pairs = params.threads / 2;
    params.lanes = params.crossed ? params.pairs : 1;
    params.groups = params.ops / GROUP / params.lanes;
    params.rings = pages_map(params.pairs * params.lanes * sizeof(struct ring));
    const struct team team = {.threads = params.threads, .work = pass_work, .params = &params, .counted = true};
    struct outcome outcome = team_run(&team);
    result_begin("producer_consumer", params.threads, outcome.ops, outcome.ns);
    result_count("size", params.size);
    result_count("crossed", params.crossed);
    library_counts_print(&outcome.counts, outcome.ops);
    return result_end(outcome.errors);
}
