/* SPDX-License-Identifier: MIT
 *
 * Why: see cache_main.h.  An operation is one allocation, `writes` increments of each of its bytes, and its free; so
 * the figure is dominated by where the block lies, as it should be.  The sum of the bytes is checked each time.
 */
#include "cache_main.h"

#include "args.h"
#include "memory.h"
#include "result.h"
#include "team.h"

#include <stdint.h>
#include <stdlib.h>

struct params {
    uint64_t threads, rounds, writes, size;
    bool passive;
    unsigned char **given; /* blocks the main thread passed to the workers */
};

static void cache_work(struct worker *worker)
{
    const struct params *params = worker->team->params;
    uint64_t errors = 0;
    if (params->passive)
        free(params->given[worker->index]);
    for (uint64_t round = 0; round < params->rounds; round++) {
        volatile unsigned char *object = malloc(params->size);
        for (uint64_t i = 0; i < params->size; i++)
            object[i] = 0;
        for (uint64_t write = 0; write < params->writes; write++) {
            for (uint64_t i = 0; i < params->size; i++)
                object[i]++;
        }
        for (uint64_t i = 0; i < params->size; i++)
            errors += object[i] != (unsigned char)params->writes;
        free((void *)object);
    }
    worker->ops = params->rounds;
    worker->errors = errors;
}

int cache_main(const char *name, bool passive, int argc, char **argv)
{
    struct params params = {.threads = 2, .rounds = 200, .writes = 100000, .size = 8, .passive = passive};
    const struct arg args[] = {
        {"threads", ARG_COUNT, &params.threads, "threads"},
        {"rounds", ARG_COUNT, &params.rounds, "allocations per thread"},
        {"writes", ARG_COUNT, &params.writes, "increments of each byte of a block"},
        {"size", ARG_COUNT, &params.size, "bytes of a block"},
    };
    args_read(name, argc, argv, args, sizeof(args) / sizeof(args[0]));
    if (!params.threads || !params.size)
        args_reject("threads, size", "at least 1");
    params.given = pages_map(params.threads * sizeof(*params.given));
    for (uint64_t i = 0; passive && i < params.threads; i++)
        params.given[i] = malloc(params.size);
    const struct team team = {.threads = params.threads, .work = cache_work, .params = &params};
    struct outcome outcome = team_run(&team);
    result_begin(name, params.threads, outcome.ops, outcome.ns);
    result_count("size", params.size);
    result_count("writes", params.writes);
    return result_end(outcome.errors);
}
