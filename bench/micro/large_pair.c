/* SPDX-License-Identifier: MIT
 *
 * Why: a scratch buffer of some hundred KiB, taken for each request and freed at its end, costs whatever the way to an
 * allocator's large blocks costs: most often a lock of the whole process, so that with more threads it gets dearer.  An
 * operation is one malloc, one word written, and its free, `live` buffers at a time.
 */
#include "args.h"
#include "result.h"
#include "team.h"

#include <stdlib.h>

enum { LIVE_MAX = 64 };

struct params {
    uint64_t threads, min, max, live, ops;
};

static void pair_work(struct worker *worker)
{
    const struct params *params = worker->team->params;
    uint64_t *buffers[LIVE_MAX];
    uint64_t size = params->min, spread = params->max - params->min;
    for (uint64_t done = 0; done < params->ops; done += params->live) {
        for (uint64_t i = 0; i < params->live; i++) {
            if (spread != 0)
                size = random_between(&worker->random, params->min, params->max);
            buffers[i] = malloc(size);
            if (!buffers[i]) {
                worker->errors++;
                return;
            }
            *buffers[i] = i;
        }
        for (uint64_t i = 0; i < params->live; i++) {
            worker->errors += *buffers[i] != i;
            free(buffers[i]);
        }
    }
    worker->ops = params->ops;
}

int main(int argc, char **argv)
{
    struct params params = {.threads = 1, .min = 200 << 10, .max = 200 << 10, .live = 1, .ops = 4000000};
    const struct arg args[] = {
        {"threads", ARG_COUNT, &params.threads, "threads, each doing all of ops"},
        {"min", ARG_COUNT, &params.min, "smallest buffer"},
        {"max", ARG_COUNT, &params.max, "largest buffer"},
        {"live", ARG_COUNT, &params.live, "buffers taken before the first is freed"},
        {"ops", ARG_COUNT, &params.ops, "buffers per thread"},
    };
    ARGS_READ("large_pair", argc, argv, args);
    if (params.min < 8 || params.max < params.min || !params.live || params.live > LIVE_MAX)
        args_reject("min, max, live", "8 <= min <= max, live from 1 to 64");
    const struct team team = {.threads = params.threads, .work = pair_work, .params = &params};
    struct outcome outcome = team_run(&team);
    result_begin("large_pair", params.threads, outcome.ops, outcome.ns);
    result_count("min", params.min);
    result_count("max", params.max);
    result_count("live", params.live);
    return result_end(outcome.errors);
}
