/* SPDX-License-Identifier: MIT
 *
 * Why: the shortest question one can ask an allocator: what do one malloc and the free that follows it cost when
 * everything is warm.  An operation is such a pair.  The block is not written: a single pair at a time, so the same
 * block comes back each time, and the figure is the length of the two fast paths.
 */
#include "args.h"
#include "result.h"
#include "sink.h"
#include "team.h"

#include <stdlib.h>

struct params {
    uint64_t threads, size, ops;
};

static void pair_work(struct worker *worker)
{
    const struct params *params = worker->team->params;
    size_t size = params->size;
    uint64_t ops = params->ops;
    uint64_t null_blocks = 0;
    uintptr_t bits = 0;
    for (uint64_t i = 0; i < ops; i++) {
        void *block = malloc(size);
        sink(block);
        null_blocks += block == NULL;
        bits |= (uintptr_t)block;
        free(block);
    }
    worker->ops = ops;
    worker->errors = null_blocks + ((bits & (size < 16 ? 7 : 15)) != 0);
}

int main(int argc, char **argv)
{
    struct params params = {.threads = 1, .size = 64, .ops = 30000000};
    const struct arg args[] = {
        {"threads", ARG_COUNT, &params.threads, "threads, each doing all of ops"},
        {"size", ARG_COUNT, &params.size, "bytes of a block"},
        {"ops", ARG_COUNT, &params.ops, "pairs per thread"},
    };
    ARGS_READ("pair", argc, argv, args);
    const struct team team = {.threads = params.threads, .work = pair_work, .params = &params};
    struct outcome outcome = team_run(&team);
    result_begin("pair", params.threads, outcome.ops, outcome.ns);
    result_count("size", params.size);
    return result_end(outcome.errors);
}
