/* SPDX-License-Identifier: MIT
 *
 * Why: heaps that belong to cpus meet threads that move.  One thread works on a live heap of `mib` MiB (the loop of
 * `random`); a second thread of the process exists but sleeps, waking once a second for one allocation (with a second
 * task in the process the kernel gives a migrating thread a new concurrency id each time).  A separate process moves
 * the worker between two cpus every `every_ms`, so moves hit it at any instruction.
 *
 * Unmoved and moved phases alternate `rounds` times; the unmoved ones alternate between the two cpus.  Reported:
 * throughput moved over unmoved, and how much resident memory grew over the moved phases (the live size is constant).
 * Exits with 77 where there are not two cpus to move between.
 */
#define _GNU_SOURCE
#include "args.h"
#include "clock.h"
#include "cpus.h"
#include "memory.h"
#include "result.h"
#include "sink.h"
#include "slots.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static struct params {
    uint64_t mib, min, max, ms, rounds, every_ms;
} params = {.mib = 100, .min = 16, .max = 1024, .ms = 100, .rounds = 3, .every_ms = 1};

/* Shared with the mover. */
struct orders {
    uint32_t x_moving;
    uint64_t x_moves;
};

static struct orders *orders;
static int cpus[2];

static pid_t mover_start(void)
{
    pid_t worker = getpid();
    pid_t mover = fork();
    if (mover < 0) {
        perror("migration: fork");
        exit(3);
    }
    if (mover)
        return mover;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (unsigned turn = 0;; turn++) {
        clock_sleep_ms(params.every_ms);
        if (__atomic_load_n(&orders->x_moving, __ATOMIC_ACQUIRE)) {
            cpu_of_thread_set(worker, cpus[turn % 2]);
            __atomic_fetch_add(&orders->x_moves, 1, __ATOMIC_RELAXED);
        }
    }
}

static void *idle_thread(void *unused)
{
    (void)unused;
    for (;;) {
        void *block = malloc(100);
        sink(block);
        free(block);
        clock_sleep_ms(1000);
    }
    return NULL;
}

/* Works for params.ms; returns steps a second. */
static double phase_run(struct slots *slots, bool moved, int cpu)
{
    if (!moved)
        cpu_of_thread_set(0, cpu);
    __atomic_store_n(&orders->x_moving, moved, __ATOMIC_RELEASE);
    uint64_t begin_ns = clock_ns(), now_ns = begin_ns, steps = 0;
    while (now_ns - begin_ns < params.ms * 1000000) {
        for (unsigned i = 0; i < 256; i++)
            slots_step(slots);
        steps += 256;
        now_ns = clock_ns();
    }
    __atomic_store_n(&orders->x_moving, 0, __ATOMIC_RELEASE);
    clock_sleep_ms(2 * params.every_ms); /* an order under way is done before the next phase pins the thread */
    return (double)steps * 1e9 / (double)(now_ns - begin_ns);
}

int main(int argc, char **argv)
{
    const struct arg args[] = {
        {"mib", ARG_COUNT, &params.mib, "live heap"},
        {"min", ARG_COUNT, &params.min, "smallest block, at least 8"},
        {"max", ARG_COUNT, &params.max, "largest block"},
        {"ms", ARG_COUNT, &params.ms, "length of a phase"},
        {"rounds", ARG_COUNT, &params.rounds, "pairs of phases"},
        {"every_ms", ARG_COUNT, &params.every_ms, "time between moves"},
    };
    ARGS_READ("migration", argc, argv, args);
    if (!params.rounds || !params.ms || !params.every_ms)
        args_reject("rounds, ms, every_ms", "at least 1");
    if (!cpus_two(cpus)) {
        fprintf(stderr, "migration: skipped: needs two cpus\n");
        return 77;
    }
    orders = pages_map_shared(sizeof(*orders));
    pid_t mover = mover_start();
    pthread_t idle;
    if (pthread_create(&idle, NULL, idle_thread, NULL))
        return 3;

    struct random_source random;
    random_seed(&random, args_seed());
    struct slots slots = {.count = (params.mib << 20) / ((params.min + params.max) / 2),
                          .min = params.min,
                          .max = params.max,
                          .touch = params.max,
                          .random = &random};
    slots_open(&slots);
    phase_run(&slots, false, cpus[0]); /* brings the heap to its steady state */
    uint64_t rss_before_kib = memory_rss_kib();
    double unmoved = 0, moved = 0;
    uint64_t begin_ns = clock_ns();
    for (uint64_t round = 0; round < params.rounds; round++) {
        unmoved += phase_run(&slots, false, cpus[round % 2]);
        moved += phase_run(&slots, true, 0);
    }
    uint64_t end_ns = clock_ns();
    uint64_t rss_after_kib = memory_rss_kib();
    kill(mover, SIGKILL);
    waitpid(mover, NULL, 0);
    uint64_t errors = slots_close(&slots);
    double phase_seconds = (double)params.ms / 1e3;
    result_begin("migration", 1, (uint64_t)((unmoved + moved) * phase_seconds), end_ns - begin_ns);
    result_count("mib", params.mib);
    result_count("moves", orders->x_moves);
    result_real("unmoved_ops_per_second", unmoved / (double)params.rounds);
    result_real("moved_ops_per_second", moved / (double)params.rounds);
    result_real("throughput_ratio", moved / unmoved);
    result_count("rss_before_kib", rss_before_kib);
    result_count("rss_after_kib", rss_after_kib);
    result_real("growth_ratio", (double)rss_after_kib / (double)rss_before_kib);
    return result_end(errors);
}
