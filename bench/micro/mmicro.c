/* SPDX-License-Identifier: MIT
 *
 * Why: LFMalloc's own benchmark, which leaves out scheduling and fairness: for a fixed time every thread allocates
 * `blocks` blocks of one size and frees them in the order they were allocated; the figure is how many pairs all
 * threads did together.  No thread is created or ends inside the interval.  Defaults are those of the paper's Table 2
 * (64 blocks of 200 bytes; it ran 64 threads for 10 s); Table 3 uses blocks of 64.
 */
#include "args.h"
#include "memory.h"
#include "result.h"
#include "sched_counts.h"
#include "team.h"

#include <stdlib.h>

struct params {
    uint64_t threads, blocks, size, ms;
};

static struct sched_counts counts; /* of all workers */

static void mmicro_setup(struct worker *worker)
{
    const struct params *params = worker->team->params;
    worker->state = pages_map(params->blocks * sizeof(uint64_t *));
}

static void mmicro_work(struct worker *worker)
{
    const struct params *params = worker->team->params;
    uint64_t **blocks = worker->state;
    uint64_t count = params->blocks;
    uint64_t pairs = 0;
    uint64_t errors = 0;
    uint64_t owner = worker->index << 32;
    while (!team_stopped()) {
        for (uint64_t i = 0; i < count; i++) {
            uint64_t *block = malloc(params->size);
            *block = owner + i;
            blocks[i] = block;
        }
        for (uint64_t i = 0; i < count; i++) {
            errors += *blocks[i] != owner + i;
            free(blocks[i]);
        }
        pairs += count;
    }
    worker->ops = pairs;
    worker->errors = errors;
}

static void mmicro_finish(struct worker *worker)
{
    const struct params *params = worker->team->params;
    sched_counts_add_thread(&counts);
    pages_unmap(worker->state, params->blocks * sizeof(uint64_t *));
}

int main(int argc, char **argv)
{
    struct params params = {.threads = 2, .blocks = 64, .size = 200, .ms = 300};
    const struct arg args[] = {
        {"threads", ARG_COUNT, &params.threads, "threads"},
        {"blocks", ARG_COUNT, &params.blocks, "blocks alive per thread"},
        {"size", ARG_COUNT, &params.size, "bytes of a block, at least 8"},
        {"ms", ARG_COUNT, &params.ms, "length of the interval"},
    };
    ARGS_READ("mmicro", argc, argv, args);
    if (params.size < 8 || !params.blocks || !params.ms)
        args_reject("size, blocks, ms", "size at least 8, the others at least 1");
    const struct team team = {.threads = params.threads,
                              .run_ms = params.ms,
                              .setup = mmicro_setup,
                              .work = mmicro_work,
                              .finish = mmicro_finish,
                              .params = &params};
    struct outcome outcome = team_run(&team);
    result_begin("mmicro", params.threads, outcome.ops, outcome.ns);
    result_count("blocks", params.blocks);
    result_count("size", params.size);
    result_real("pairs_per_ms", outcome.ns ? (double)outcome.ops * 1e6 / (double)outcome.ns : 0);
    sched_counts_print(&counts); /* Table 2's upcalls, as Linux counts them */
    return result_end(outcome.errors);
}
