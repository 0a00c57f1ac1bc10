/* SPDX-License-Identifier: MIT
 *
 * Why: Hoard's threadtest: each of T threads, round after round, allocates its share of `objects` objects and frees
 * them all again, with some computation between if asked for.  Nothing is shared, so time should fall with threads up
 * to the number of cpus; every object's content is checked before it goes.
 */
#include "args.h"
#include "memory.h"
#include "result.h"
#include "sched_counts.h"
#include "sink.h"
#include "team.h"

#include <stdlib.h>

struct params {
    uint64_t threads, rounds, objects, size, work;
};

static uint64_t share_of(const struct params *params)
{
    return params->objects / params->threads;
}

static void threadtest_setup(struct worker *worker)
{
    const struct params *params = worker->team->params;
    worker->state = pages_map(share_of(params) * sizeof(uint64_t *));
}

static void compute(uint64_t steps)
{
    for (uint64_t i = 0; i < steps; i++)
        sink(i);
}

static void threadtest_work(struct worker *worker)
{
    const struct params *params = worker->team->params;
    uint64_t **objects = worker->state;
    uint64_t count = share_of(params);
    uint64_t errors = 0;
    for (uint64_t round = 0; round < params->rounds; round++) {
        for (uint64_t i = 0; i < count; i++) {
            objects[i] = malloc(params->size);
            *objects[i] = i ^ round;
            compute(params->work);
        }
        for (uint64_t i = 0; i < count; i++) {
            errors += *objects[i] != (i ^ round);
            free(objects[i]);
            compute(params->work);
        }
    }
    worker->ops = params->rounds * count;
    worker->errors = errors;
}

static void threadtest_finish(struct worker *worker)
{
    pages_unmap(worker->state, share_of(worker->team->params) * sizeof(uint64_t *));
}

int main(int argc, char **argv)
{
    struct params params = {.threads = 2, .rounds = 300, .objects = 30000, .size = 8, .work = 0};
    const struct arg args[] = {
        {"threads", ARG_COUNT, &params.threads, "threads that share the objects out"},
        {"rounds", ARG_COUNT, &params.rounds, "rounds"},
        {"objects", ARG_COUNT, &params.objects, "objects of all threads together"},
        {"size", ARG_COUNT, &params.size, "bytes of an object, at least 8"},
        {"work", ARG_COUNT, &params.work, "steps of computation at each allocation and free"},
    };
    ARGS_READ("threadtest", argc, argv, args);
    if (params.size < 8 || !params.threads || params.objects < params.threads)
        args_reject("size, objects", "size at least 8, an object per thread");
    const struct team team = {.threads = params.threads,
                              .setup = threadtest_setup,
                              .work = threadtest_work,
                              .finish = threadtest_finish,
                              .params = &params};
    struct outcome outcome = team_run(&team);
    result_begin("threadtest", params.threads, outcome.ops, outcome.ns);
    result_count("objects", params.objects);
    result_count("size", params.size);
    sched_counts_print(&(struct sched_counts){0});
    return result_end(outcome.errors);
}
