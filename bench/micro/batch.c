/* SPDX-License-Identifier: MIT
 *
 * Why: programs build something and then throw it away.  A batch of blocks is allocated, each marked with its number,
 * then all are checked and freed in the order they came.  Unlike `pair` this walks through fresh blocks, so it shows
 * how well lists, refills and cache lines are handled.  An operation is one malloc with its free.
 */
#include "args.h"
#include "memory.h"
#include "result.h"
#include "team.h"

#include <stdlib.h>

struct params {
    uint64_t threads, size, batch, rounds;
};

static void batch_setup(struct worker *worker)
{
    const struct params *params = worker->team->params;
    uint64_t **blocks = pages_map(params->batch * sizeof(*blocks));
    for (uint64_t i = 0; i < params->batch; i++) {
        blocks[i] = malloc(params->size);
        *blocks[i] = i;
    }
    for (uint64_t i = 0; i < params->batch; i++)
        free(blocks[i]);
    worker->state = blocks;
}

static void batch_work(struct worker *worker)
{
    const struct params *params = worker->team->params;
    uint64_t **blocks = worker->state;
    uint64_t errors = 0;
    for (uint64_t round = 0; round < params->rounds; round++) {
        for (uint64_t i = 0; i < params->batch; i++) {
            uint64_t *block = malloc(params->size);
            *block = i;
            blocks[i] = block;
        }
        for (uint64_t i = 0; i < params->batch; i++) {
            errors += *blocks[i] != i;
            free(blocks[i]);
        }
    }
    worker->ops = params->rounds * params->batch;
    worker->errors = errors;
}

static void batch_finish(struct worker *worker)
{
    const struct params *params = worker->team->params;
    pages_unmap(worker->state, params->batch * sizeof(uint64_t *));
}

int main(int argc, char **argv)
{
    struct params params = {.threads = 1, .size = 64, .batch = 1000, .rounds = 20000};
    const struct arg args[] = {
        {"threads", ARG_COUNT, &params.threads, "threads, each doing all rounds"},
        {"size", ARG_COUNT, &params.size, "bytes of a block, at least 8"},
        {"batch", ARG_COUNT, &params.batch, "blocks alive at a time"},
        {"rounds", ARG_COUNT, &params.rounds, "batches per thread"},
    };
    ARGS_READ("batch", argc, argv, args);
    if (params.size < 8 || !params.batch)
        args_reject("size, batch", "size at least 8, batch at least 1");
    const struct team team = {
        .threads = params.threads, .setup = batch_setup, .work = batch_work, .finish = batch_finish, .params = &params};
    struct outcome outcome = team_run(&team);
    result_begin("batch", params.threads, outcome.ops, outcome.ns);
    result_count("size", params.size);
    result_count("batch", params.batch);
    return result_end(outcome.errors);
}
