/* SPDX-License-Identifier: MIT
 *
 * Why: see team.h.  The gate is a futex word: opening it wakes everybody with one system call, and nobody contends for
 * a lock on the way out, which with 256 threads would itself be a benchmark.
 */
#define _GNU_SOURCE
#include "team.h"

#include "args.h"
#include "clock.h"
#include "memory.h"
#include "support/cids.h"

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

enum { STACK_BYTES = 256 * 1024, TEAM_MAX = 4096 };

uint32_t team_x_stop;
static struct gate start_gate;

static void futex_wait(uint32_t *word, uint32_t value)
{
    syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

static void futex_wake_all(uint32_t *word)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

void gate_wait(struct gate *gate)
{
    __atomic_fetch_add(&gate->x_waiting, 1, __ATOMIC_ACQ_REL);
    futex_wake_all(&gate->x_waiting);
    while (!__atomic_load_n(&gate->x_open, __ATOMIC_ACQUIRE))
        futex_wait(&gate->x_open, 0);
}

void gate_await_waiters(struct gate *gate, uint32_t count)
{
    for (;;) {
        uint32_t waiting = __atomic_load_n(&gate->x_waiting, __ATOMIC_ACQUIRE);
        if (waiting >= count)
            return;
        futex_wait(&gate->x_waiting, waiting);
    }
}

void gate_open(struct gate *gate)
{
    __atomic_store_n(&gate->x_open, 1, __ATOMIC_RELEASE);
    futex_wake_all(&gate->x_open);
}

static void stop_on_alarm(int number)
{
    (void)number;
    __atomic_store_n(&team_x_stop, 1, __ATOMIC_RELAXED);
}

/* One worker has nobody to stop it but a timer; a second thread would change what is measured. */
static void alarm_set(uint64_t delay_ms)
{
    struct sigaction action = {.sa_handler = stop_on_alarm, .sa_flags = SA_RESTART};
    struct itimerval timer = {.it_value = {(time_t)(delay_ms / 1000), (suseconds_t)(delay_ms % 1000) * 1000}};
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &timer, NULL);
}

static struct library_counts counts_at_gate;

static void counts_read(const struct team *team)
{
    if (team->counted)
        counts_at_gate = library_counts_read();
}

static uint64_t run_alone(struct worker *worker)
{
    const struct team *team = worker->team;
    if (team->setup)
        team->setup(worker);
    counts_read(team);
    uint64_t begin_ns = clock_ns();
    if (team->run_ms)
        alarm_set(team->run_ms);
    team->work(worker);
    uint64_t end_ns = clock_ns();
    if (team->finish)
        team->finish(worker);
    return end_ns - begin_ns;
}

/* Under the build of the library whose cids are what the program says, each thread has one of its own, and so a heap.
 * The main thread's is 0. */
static void cid_bind(const struct worker *worker)
{
    if (sutler_test_bind_cid != NULL)
        sutler_test_bind_cid((unsigned)worker->index + 1);
}

static void *worker_main(void *argument)
{
    struct worker *worker = argument;
    const struct team *team = worker->team;
    cid_bind(worker);
    if (team->setup)
        team->setup(worker);
    gate_wait(&start_gate);
    team->work(worker);
    worker->end_ns = clock_ns();
    if (team->finish)
        team->finish(worker);
    return NULL;
}

static uint64_t run_together(struct worker *workers, const struct team *team)
{
    pthread_t threads[TEAM_MAX];
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    for (uint64_t i = 0; i < team->threads; i++) {
        int error = pthread_create(&threads[i], &attributes, worker_main, &workers[i]);
        if (error) {
            fprintf(stderr, "pthread_create: %s\n", strerror(error));
            exit(3);
        }
    }
    pthread_attr_destroy(&attributes);
    gate_await_waiters(&start_gate, (uint32_t)team->threads);
    counts_read(team);
    uint64_t begin_ns = clock_ns();
    uint64_t end_ns = 0;
    gate_open(&start_gate);
    if (team->run_ms) {
        clock_sleep_ms(team->run_ms);
        end_ns = clock_ns();
        __atomic_store_n(&team_x_stop, 1, __ATOMIC_RELAXED);
    }
    for (uint64_t i = 0; i < team->threads; i++) {
        pthread_join(threads[i], NULL);
        if (!team->run_ms && workers[i].end_ns > end_ns)
            end_ns = workers[i].end_ns;
    }
    return end_ns - begin_ns;
}

struct outcome team_run(const struct team *team)
{
    if (team->threads < 1 || team->threads > TEAM_MAX)
        args_reject("threads", "1 to 4096");
    size_t bytes = team->threads * sizeof(struct worker);
    struct worker *workers = pages_map(bytes);
    for (uint64_t i = 0; i < team->threads; i++) {
        workers[i].index = i;
        workers[i].team = team;
        random_seed(&workers[i].random, args_seed() * 1000003 + i);
    }
    team_x_stop = 0;
    start_gate = (struct gate){0, 0};
    struct outcome outcome = {.ns = team->threads == 1 ? run_alone(workers) : run_together(workers, team)};
    if (team->counted) {
        struct library_counts at_end = library_counts_read();
        outcome.counts = library_counts_between(&counts_at_gate, &at_end);
    }
    for (uint64_t i = 0; i < team->threads; i++) {
        outcome.ops += workers[i].ops;
        outcome.errors += workers[i].errors;
    }
    pages_unmap(workers, bytes);
    return outcome;
}
