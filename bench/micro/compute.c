/* SPDX-License-Identifier: MIT
 *
 * Why: whether a second thread can take over allocation depends on how much the program does besides: it gains at most
 * what its own malloc and free cost, and it waits when the other thread needs longer for them than the program between
 * them.  So here that time is a parameter.  An operation frees the oldest of `live` blocks, allocates another of the
 * next size, marks it, and computes `work` dependent steps, about a nanosecond each.  MMT's programs (its Table II: 3
 * to 13 million calls a second) lie where an operation takes 150 to 600 ns.
 */
#include "args.h"
#include "clock.h"
#include "memory.h"
#include "result.h"

#include <stdlib.h>

static uint64_t compute(uint64_t state, uint64_t steps)
{
    for (uint64_t i = 0; i < steps; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        __asm__ volatile("" : "+r"(state)); /* no closed form, no vectors */
    }
    return state;
}

int main(int argc, char **argv)
{
    static const uint64_t sizes[] = {24, 40, 24, 64, 24, 40, 24, 128};
    uint64_t work = 100, live = 1000, ops = 500000;
    const struct arg args[] = {
        {"work", ARG_COUNT, &work, "steps of computation between two blocks, about 1 ns each"},
        {"live", ARG_COUNT, &live, "blocks alive at a time"},
        {"ops", ARG_COUNT, &ops, "operations"},
    };
    ARGS_READ("compute", argc, argv, args);
    if (!live || !ops)
        args_reject("live, ops", "at least 1");
    uint64_t **blocks = pages_map(live * sizeof(*blocks));
    uint64_t state = args_seed(), errors = 0;
    for (uint64_t i = 0; i < live; i++) {
        blocks[i] = malloc(sizes[i % 8]);
        *blocks[i] = i;
    }
    uint64_t begin_ns = clock_ns();
    for (uint64_t op = live, slot = 0; op < live + ops; op++) {
        errors += *blocks[slot] != op - live;
        free(blocks[slot]);
        uint64_t *block = malloc(sizes[op % 8]);
        *block = op;
        blocks[slot] = block;
        slot = slot + 1 < live ? slot + 1 : 0;
        state = compute(state, work);
    }
    uint64_t ns = clock_ns() - begin_ns;
    for (uint64_t i = 0; i < live; i++)
        free(blocks[i]);
    pages_unmap(blocks, live * sizeof(*blocks));
    result_begin("compute", 1, ops, ns);
    result_count("work", work);
    result_count("live", live);
    result_count("checksum", state);
    return result_end(errors);
}
