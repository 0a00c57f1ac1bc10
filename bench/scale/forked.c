/* SPDX-License-Identifier: MIT
 *
 * Why: servers fork a child for each request or connection from a heap that has run for a while.  Its free blocks lie one
 * here, one there, on pages that parent and child share until one of them writes: each page a child's mallocs and frees
 * touch first is copied.
 *
 * The parent has `blocks` live ones of 16 to 2,015 bytes and has exchanged all of them a few times at random.  Each of
 * `children`, one after the other, allocates `requests` blocks, writes to their first bytes and frees them; with `swap=1`
 * each of its blocks takes the place of one of the parent's, which it frees.  An operation is a malloc and a free in a
 * child; the time is the parent's, forks and waits included, less that of as many children that do nothing.
 */
#include "args.h"
#include "clock.h"
#include "random.h"
#include "result.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static struct params {
    uint64_t blocks, children, requests, swap;
} params = {.blocks = 20000, .children = 60, .requests = 3000};

static uint64_t **live;

static uint64_t *make(struct random_source *random)
{
    uint64_t *block = malloc(16 + random_below(random, 2000));
    *block = (uintptr_t)block;
    return block;
}

static uint64_t exchange(struct random_source *random)
{
    uint64_t **slot = &live[random_below(random, params.blocks)];
    const uint64_t errors = **slot != (uintptr_t)*slot;
    free(*slot);
    *slot = make(random);
    return errors;
}

static uint64_t answer(struct random_source *random, uint64_t requests)
{
    uint64_t errors = 0;
    if (params.swap) {
        for (uint64_t i = 0; i < requests; i++)
            errors += exchange(random);
        return errors;
    }
    uint64_t **own = malloc(requests * sizeof *own);
    for (uint64_t i = 0; i < requests; i++)
        own[i] = make(random);
    for (uint64_t i = 0; i < requests; i++) {
        errors += *own[i] != (uintptr_t)own[i];
        free(own[i]);
    }
    free(own);
    return errors;
}

/* Returns the nanoseconds of all children, each of which answers so many requests. */
static uint64_t fork_children(struct random_source *random, uint64_t requests, uint64_t *errors)
{
    const uint64_t begin = clock_ns();
    for (uint64_t i = 0; i < params.children; i++) {
        const pid_t child = fork();
        if (child == 0)
            _exit(requests != 0 && answer(random, requests) != 0);
        int status = 1;
        *errors += child < 0 || waitpid(child, &status, 0) != child || status != 0;
    }
    return clock_ns() - begin;
}

static uint64_t faults_of_children(void)
{
    struct rusage usage = {0};
    getrusage(RUSAGE_CHILDREN, &usage);
    return (uint64_t)usage.ru_minflt;
}

int main(int argc, char **argv)
{
    const struct arg args[] = {
        {"blocks", ARG_COUNT, &params.blocks, "live blocks of the parent"},
        {"children", ARG_COUNT, &params.children, "children, one after the other"},
        {"requests", ARG_COUNT, &params.requests, "blocks each of them allocates and frees"},
        {"swap", ARG_COUNT, &params.swap, "1: they take the place of the parent's"},
    };
    ARGS_READ("forked", argc, argv, args);
    if (!params.blocks || !params.children || !params.requests)
        args_reject("blocks, children, requests", "at least 1");
    struct random_source random;
    random_seed(&random, 1);
    uint64_t errors = 0;
    live = malloc(params.blocks * sizeof *live);
    for (uint64_t i = 0; i < params.blocks; i++)
        live[i] = make(&random);
    for (uint64_t i = 0; i < params.blocks * 5; i++)
        errors += exchange(&random);
    const uint64_t idle_ns = fork_children(&random, 0, &errors), idle_faults = faults_of_children();
    const uint64_t ns = fork_children(&random, params.requests, &errors);
    const uint64_t faults = faults_of_children() - idle_faults - idle_faults;
    result_begin("forked", 1, params.children * params.requests, ns > idle_ns ? ns - idle_ns : 1);
    result_real("faults_per_child", (double)faults / (double)params.children);
    result_real("fork_us", (double)idle_ns / 1e3 / (double)params.children);
    return result_end(errors);
}
