/* SPDX-License-Identifier: MIT
 *
 * Why: threads that start early make progress outside the timed interval and flatter the figure (LFMalloc found this in
 * Larson).  So all workers prepare, then wait at a gate; the clock is read and only then the gate opens.
 *
 * Two forms of run: fixed work (run_ms = 0: `work` returns when done, the interval ends when the last worker does) and
 * fixed time (`work` loops until worker_stopped(), the interval ends when the flag is raised).  One worker runs on the
 * main thread, so that a single-threaded run is single-threaded in every library's eyes.
 *
 * Set-up and clean-up run on the worker's own thread, outside the interval.
 *
 * Under the build of the library with synthetic cids (libsutler_cids.so, tests/support/cids.h) each worker of several
 * has a cid of its own: so many heaps on however many processors.  Programs that start threads in other ways do not run
 * under it.
 */
#ifndef BENCH_TEAM_H
#define BENCH_TEAM_H

#include "library_counts.h"
#include "random.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A gate that workers wait at (sleeping) until the starter opens it. */
struct gate {
    uint32_t x_open;
    uint32_t x_waiting;
};

void gate_wait(struct gate *gate);
void gate_await_waiters(struct gate *gate, uint32_t count);
void gate_open(struct gate *gate);

struct worker {
    uint64_t index;              /* 0 .. threads - 1 */
    struct random_source random; /* its own stream */
    const struct team *team;
    void *state;     /* for setup, work and finish to share */
    uint64_t ops;    /* out: operations done inside the interval */
    uint64_t errors; /* out: wrong results found */
    uint64_t end_ns;
} __attribute__((aligned(128)));

struct team {
    uint64_t threads;
    uint64_t run_ms;                /* 0: fixed work */
    void (*setup)(struct worker *); /* may be NULL, as may finish */
    void (*work)(struct worker *);
    void (*finish)(struct worker *);
    const void *params;
    bool counted; /* the outcome tells what the library counted, from the gate to the end of clean-up */
};

struct outcome {
    uint64_t ops;
    uint64_t errors;
    uint64_t ns;
    struct library_counts counts;
};

struct outcome team_run(const struct team *team);

extern uint32_t team_x_stop;

static inline bool team_stopped(void)
{
    return __atomic_load_n(&team_x_stop, __ATOMIC_RELAXED);
}

#ifdef __cplusplus
}
#endif
#endif
