/* SPDX-License-Identifier: MIT
 *
 * Why: Lever and Boreham's test of malloc on a multiprocessor: T threads each do the same number of malloc/free pairs
 * of one size, and each thread's own time is looked at.  With a scalable allocator a thread's time does not depend on
 * how many others run (up to the number of cpus): `slowest` and `mean` thread times are reported beside the whole.
 */
#include "args.h"
#include "clock.h"
#include "memory.h"
#include "result.h"
#include "sink.h"
#include "team.h"

#include <stdlib.h>

struct params {
    uint64_t threads, size, ops;
    uint64_t *thread_ns;
};

static void scalability_work(struct worker *worker)
{
    const struct params *params = worker->team->params;
    uint64_t errors = 0;
    uint64_t begin_ns = clock_ns();
    for (uint64_t i = 0; i < params->ops; i++) {
        volatile unsigned char *block = malloc(params->size);
        sink(block);
        *block = (unsigned char)i;
        errors += *block != (unsigned char)i;
        free((void *)block);
    }
    params->thread_ns[worker->index] = clock_ns() - begin_ns;
    worker->ops = params->ops;
    worker->errors = errors;
}

int main(int argc, char **argv)
{
    struct params params = {.threads = 2, .size = 512, .ops = 20000000};
    const struct arg args[] = {
        {"threads", ARG_COUNT, &params.threads, "threads, each doing all of ops"},
        {"size", ARG_COUNT, &params.size, "bytes of a block"},
        {"ops", ARG_COUNT, &params.ops, "pairs per thread"},
    };
    ARGS_READ("linux_scalability", argc, argv, args);
    if (!params.threads || !params.size || !params.ops)
        args_reject("threads, size, ops", "at least 1");
    params.thread_ns = pages_map(params.threads * sizeof(uint64_t));
    const struct team team = {.threads = params.threads, .work = scalability_work, .params = &params};
    struct outcome outcome = team_run(&team);
    uint64_t slowest_ns = 0, sum_ns = 0;
    for (uint64_t i = 0; i < params.threads; i++) {
        sum_ns += params.thread_ns[i];
        if (params.thread_ns[i] > slowest_ns)
            slowest_ns = params.thread_ns[i];
    }
    result_begin("linux_scalability", params.threads, outcome.ops, outcome.ns);
    result_count("size", params.size);
    result_real("mean_thread_ns_per_op", (double)sum_ns / (double)params.threads / (double)params.ops);
    result_real("slowest_thread_ns_per_op", (double)slowest_ns / (double)params.ops);
    return result_end(outcome.errors);
}
