/* SPDX-License-Identifier: MIT
 *
 * Why: servers fork a child for each request or connection from a heap that has run for a while.  Its free blocks lie
 * one here, one there, on pages that parent and child share until one of them writes: each page a child's mallocs and
 * frees touch first is copied.
 *
 * The parent has `blocks` live ones of 16 to 2,015 bytes and has exchanged all of them a few times at random.  Each of
 * `children`, one after the other, allocates `requests` blocks, writes to their first bytes and frees them; with
 * `swap=1` each of its blocks takes the place of one of the parent's, which it frees.  An operation is a malloc and a
 * free in a child; the time is the children's from the first malloc to the last free, without the fork and the exit.
 */
#include "args.h"
#include "clock.h"
#include "memory.h"
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

/* What a child does.  Returns how many errors that showed. */
static uint64_t answer(struct random_source *random)
{
    const uint64_t requests = params.requests;
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

/* Of a child, in memory it shares with its parent; or of all. */
struct report {
    uint64_t ns, errors;
};

/* Forks children one after the other.  Returns what they reported, in all. */
static struct report fork_children(struct random_source *random)
{
    struct report sum = {0}, *shared = pages_map_shared(sizeof *shared);
    for (uint64_t i = 0; i < params.children; i++) {
        const pid_t child = fork();
        if (child == 0) {
            const uint64_t begin = clock_ns();
            shared->errors = answer(random);
            shared->ns = clock_ns() - begin;
            _exit(0);
        }
        int status = 1;
        sum.errors += child < 0 || waitpid(child, &status, 0) != child || status != 0 || shared->errors != 0;
        sum.ns += shared->ns;
    }
    pages_unmap(shared, sizeof *shared);
    return sum;
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
    const struct report report = fork_children(&random);
    result_begin("forked", 1, params.children * params.requests, report.ns);
    result_real("faults_per_child", (double)faults_of_children() / (double)params.children);
    return result_end(errors + report.errors);
}
