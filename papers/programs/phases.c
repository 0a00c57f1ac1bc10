/* SPDX-License-Identifier: MIT
 *
 * Why: a program whose demand comes in phases: `live` blocks of one size are built up, used and freed, then as many of
 * another, in turn through `sizes`; `rounds` times.  It is what chapter 10 of the thesis has in mind where it would
 * have the manager "identify usage patterns" and adjust its bins "in preparation for future allocation loads".  `work`
 * steps of computation stand between two calls.  An operation is one block.
 */
#include "args.h"
#include "clock.h"
#include "result.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIZES_MOST 8

static uint64_t compute(uint64_t x, uint64_t steps)
{
    for (uint64_t i = 0; i < steps; i++)
        x = x * 6364136223846793005u + 1442695040888963407u;
    return x;
}

/* Errors found. */
static uint64_t phase(unsigned char **blocks, uint64_t live, size_t size, uint64_t work, uint64_t *sum)
{
    uint64_t errors = 0;
    for (uint64_t i = 0; i < live; i++) {
        blocks[i] = malloc(size);
        if (blocks[i] == NULL) {
            fprintf(stderr, "phases: out of memory\n");
            exit(3);
        }
        blocks[i][0] = (unsigned char)i;
        blocks[i][size - 1] = (unsigned char)~i;
        *sum = compute(*sum, work);
    }
    for (uint64_t i = 0; i < live; i++) {
        errors += blocks[i][size - 1] != (unsigned char)~i || blocks[i][0] != (unsigned char)i;
        free(blocks[i]);
        *sum = compute(*sum, work);
    }
    return errors;
}

int main(int argc, char **argv)
{
    uint64_t live = 3000, rounds = 10, work = 100, sizes = 4;
    const struct arg args[] = {
        {"live", ARG_COUNT, &live, "blocks of a phase"},
        {"rounds", ARG_COUNT, &rounds, "times all phases come"},
        {"work", ARG_COUNT, &work, "steps of computation between two calls"},
        {"sizes", ARG_COUNT, &sizes, "phases in a round, 1 to 8: of 40 bytes, then twice as many each"},
    };
    ARGS_READ("phases", argc, argv, args);
    if (live < 1)
        args_reject("live", "at least 1");
    if (sizes < 1 || sizes > SIZES_MOST)
        args_reject("sizes", "1 to 8");
    unsigned char **blocks = calloc(live, sizeof *blocks);
    if (blocks == NULL)
        return 3;
    uint64_t errors = 0, sum = 0, begin_ns = clock_ns();
    for (uint64_t round = 0; round < rounds; round++) {
        for (uint64_t i = 0; i < sizes; i++)
            errors += phase(blocks, live, (size_t)40 << i, work, &sum);
    }
    uint64_t end_ns = clock_ns();
    free(blocks);
    result_begin("phases", 1, live * rounds * sizes, end_ns - begin_ns);
    result_count("checksum", sum);
    return result_end(errors);
}
