/* SPDX-License-Identifier: MIT
 *
 * Why: a fork copies the allocator at one moment of its work, while other threads are in the middle of theirs.  The
 * main thread forks again and again while `threads` others churn; every child checks and frees a heap it inherited,
 * allocates and frees some more, and ends.  A child that finds damage reports it; a child that hangs is killed by its
 * own alarm; both count as errors.  An operation is one fork with its child's whole life.
 */
#define _GNU_SOURCE
#include "args.h"
#include "clock.h"
#include "heap.h"
#include "memory.h"
#include "random.h"
#include "result.h"
#include "slots.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHILD_SECONDS = 30, WHOLE_SECONDS = 600 };

static struct params {
    uint64_t threads, forks, mib, child_ops;
} params = {.threads = 2, .forks = 200, .mib = 2, .child_ops = 2000};

static uint32_t x_stop;

struct churner {
    pthread_t thread;
    struct random_source random;
    uint64_t errors;
} __attribute__((aligned(128)));

static void *churn(void *argument)
{
    struct churner *churner = argument;
    struct slots slots = {.count = 500, .min = 16, .max = 2048, .touch = 8, .random = &churner->random};
    slots_open(&slots);
    while (!__atomic_load_n(&x_stop, __ATOMIC_RELAXED))
        slots_step(&slots);
    churner->errors = slots_close(&slots);
    return NULL;
}

static int child_run(struct heap_block *inherited, uint64_t number)
{
    struct random_source random;
    alarm(CHILD_SECONDS);
    random_seed(&random, args_seed() + number);
    uint64_t errors = heap_free(inherited);
    struct slots slots = {.count = 200, .min = 16, .max = 4096, .touch = 8, .random = &random};
    slots_open(&slots);
    for (uint64_t i = 0; i < params.child_ops; i++)
        slots_step(&slots);
    errors += slots_close(&slots);
    return errors != 0;
}

int main(int argc, char **argv)
{
    const struct arg args[] = {
        {"threads", ARG_COUNT, &params.threads, "churning threads beside the one that forks"},
        {"forks", ARG_COUNT, &params.forks, "children, one after another"},
        {"mib", ARG_COUNT, &params.mib, "heap each child inherits, checks and frees"},
        {"child_ops", ARG_COUNT, &params.child_ops, "replacements a child does"},
    };
    ARGS_READ("fork_storm", argc, argv, args);
    if (params.threads > 1024)
        args_reject("threads", "at most 1024");
    alarm(WHOLE_SECONDS);
    struct heap_block *heap = heap_fill(params.mib, args_seed());
    struct churner *churners = pages_map((params.threads + 1) * sizeof(*churners));
    for (uint64_t i = 0; i < params.threads; i++) {
        random_seed(&churners[i].random, args_seed() * 31 + i);
        if (pthread_create(&churners[i].thread, NULL, churn, &churners[i]))
            return 3;
    }
    uint64_t errors = 0;
    uint64_t begin_ns = clock_ns();
    for (uint64_t i = 0; i < params.forks; i++) {
        int status = 0;
        pid_t child = fork();
        if (child == 0)
            _exit(child_run(heap, i));
        if (child < 0 || waitpid(child, &status, 0) != child || status) {
            fprintf(stderr, "fork_storm: child %llu ended with status 0x%x\n", (unsigned long long)i, (unsigned)status);
            errors++;
        }
    }
    uint64_t end_ns = clock_ns();
    __atomic_store_n(&x_stop, 1, __ATOMIC_RELAXED);
    for (uint64_t i = 0; i < params.threads; i++) {
        pthread_join(churners[i].thread, NULL);
        errors += churners[i].errors;
    }
    errors += heap_free(heap);
    result_begin("fork_storm", params.threads, params.forks, end_ns - begin_ns);
    result_count("mib", params.mib);
    return result_end(errors);
}
