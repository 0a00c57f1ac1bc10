/* SPDX-License-Identifier: MIT
 *
 * Why: see slots_main.h.  Each worker has slots of its own; the interval covers steps over full slots only.
 */
#include "slots_main.h"

#include "args.h"
#include "memory.h"
#include "result.h"
#include "slots.h"
#include "team.h"

static void slots_setup(struct worker *worker)
{
    const struct slots_params *params = worker->team->params;
    struct slots *slots = pages_map(sizeof(*slots));
    slots->count = params->slots;
    slots->min = params->min;
    slots->max = params->max;
    slots->touch = params->touch;
    slots->random = &worker->random;
    slots_open(slots);
    worker->state = slots;
}

static void slots_work(struct worker *worker)
{
    const struct slots_params *params = worker->team->params;
    struct random_source random = worker->random;
    struct slots slots = *(struct slots *)worker->state;
    slots.random = &random;
    for (uint64_t i = 0; i < params->ops; i++)
        slots_step(&slots);
    *(struct slots *)worker->state = slots;
    worker->ops = params->ops;
}

static void slots_finish(struct worker *worker)
{
    worker->errors = slots_close(worker->state);
    pages_unmap(worker->state, sizeof(struct slots));
}

int slots_main(const char *name, struct slots_params params, int argc, char **argv)
{
    const struct arg args[] = {
        {"threads", ARG_COUNT, &params.threads, "threads, each with slots of its own"},
        {"min", ARG_COUNT, &params.min, "smallest block, at least 8"},
        {"max", ARG_COUNT, &params.max, "largest block"},
        {"slots", ARG_COUNT, &params.slots, "blocks alive per thread"},
        {"touch", ARG_COUNT, &params.touch, "bytes of a new block to write, one word in 64"},
        {"ops", ARG_COUNT, &params.ops, "replacements per thread"},
    };
    args_read(name, argc, argv, args, sizeof(args) / sizeof(args[0]));
    const struct team team = {.threads = params.threads,
                              .setup = slots_setup,
                              .work = slots_work,
                              .finish = slots_finish,
                              .params = &params,
                              .counted = true};
    struct outcome outcome = team_run(&team);
    result_begin(name, params.threads, outcome.ops, outcome.ns);
    result_count("min", params.min);
    result_count("max", params.max);
    result_count("slots", params.slots);
    library_counts_print(&outcome.counts, outcome.ops);
    return result_end(outcome.errors);
}
