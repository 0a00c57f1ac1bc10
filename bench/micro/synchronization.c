/* SPDX-License-Identifier: MIT
 *
 * Why: a design that gives malloc's work to another thread pays for telling it.  The thesis found that to signal a
 * thread and be signalled back takes 5 to 10 mallocs; MMT (figure 2, table I) compares Pthread's locks and semaphores
 * with spinning ones and with an allocation.  This measures all of them on two cpus of the machine at hand:
 *
 *   malloc_ns                               half of a malloc and its free (24 bytes)
 *   lock_ns, spin_lock_ns                   taken and released, nobody else there; *_contended_ns with a second thread
 *                                           that does the same, for one pair of one thread
 *   semaphore_ns, spin_semaphore_ns         one signal and the other thread's answer to it, halved: a signal and a wait
 *   condition_ns                            there and back by mutex and condition, as pass-through signals
 *   line_ns                                 there and back by two words, each written by one thread only: what two cpus
 *                                           need to pass a line to and fro
 *
 * `*_in_mallocs` is there and back over malloc_ns.  An operation is one round of any kind.
 */
#define _GNU_SOURCE
#include "args.h"
#include "clock.h"
#include "cpus.h"
#include "result.h"
#include "sink.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

struct word {
    uint32_t value;
} __attribute__((aligned(128)));

static uint64_t rounds;
static int cpus[2];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition[2] = {PTHREAD_COND_INITIALIZER, PTHREAD_COND_INITIALIZER};
static bool asked;
static sem_t semaphore[2];
static struct word spin_lock, x_word[2];
static uint64_t guarded;

static void lock_by_mutex(bool second)
{
    (void)second;
    for (uint64_t i = 0; i < rounds; i++) {
        pthread_mutex_lock(&mutex);
        guarded++;
        pthread_mutex_unlock(&mutex);
    }
}

/* MMT's minimalist lock: compare and swap, and a loop. */
static void lock_by_spinning(bool second)
{
    (void)second;
    for (uint64_t i = 0; i < rounds; i++) {
        uint32_t open = 0;
        while (!__atomic_compare_exchange_n(&spin_lock.value, &open, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED)) {
            open = 0;
            cpu_relax();
        }
        guarded++;
        __atomic_store_n(&spin_lock.value, 0, __ATOMIC_RELEASE);
    }
}

static void signal_by_semaphore(bool second)
{
    for (uint64_t i = 0; i < rounds; i++) {
        if (!second)
            sem_post(&semaphore[0]);
        sem_wait(&semaphore[!second]);
        if (second)
            sem_post(&semaphore[1]);
    }
}

static void spinning_wait(struct word *word)
{
    for (;;) {
        uint32_t seen = __atomic_load_n(&word->value, __ATOMIC_RELAXED);
        if (seen > 0 &&
            __atomic_compare_exchange_n(&word->value, &seen, seen - 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
            return;
        cpu_relax();
    }
}

static void signal_by_spinning(bool second)
{
    for (uint64_t i = 0; i < rounds; i++) {
        if (!second)
            __atomic_fetch_add(&x_word[0].value, 1, __ATOMIC_RELEASE);
        spinning_wait(&x_word[!second]);
        if (second)
            __atomic_fetch_add(&x_word[1].value, 1, __ATOMIC_RELEASE);
    }
}

static void signal_by_condition(bool second)
{
    pthread_mutex_lock(&mutex);
    for (uint64_t i = 0; i < rounds; i++) {
        if (!second) {
            asked = true;
            pthread_cond_signal(&condition[0]);
        }
        while (asked != second)
            pthread_cond_wait(&condition[!second], &mutex);
        if (second) {
            asked = false;
            pthread_cond_signal(&condition[1]);
        }
    }
    pthread_mutex_unlock(&mutex);
}

static void pass_a_line(bool second)
{
    uint32_t base = __atomic_load_n(&x_word[second].value, __ATOMIC_RELAXED);
    for (uint32_t i = 1; i <= rounds; i++) {
        if (!second)
            __atomic_store_n(&x_word[0].value, base + i, __ATOMIC_RELEASE);
        while (__atomic_load_n(&x_word[!second].value, __ATOMIC_ACQUIRE) != base + i)
            ;
        if (second)
            __atomic_store_n(&x_word[1].value, base + i, __ATOMIC_RELEASE);
    }
}

static uint32_t x_ready;

static void *partner(void *work)
{
    cpu_of_thread_set(0, cpus[1]);
    __atomic_store_n(&x_ready, 1, __ATOMIC_RELEASE);
    (*(void (**)(bool))work)(true);
    return NULL;
}

/* Nanoseconds a round, of the first thread. */
static double timed(void (*work)(bool), bool together, uint64_t count, uint64_t *total_ns)
{
    pthread_t thread;
    rounds = count;
    x_ready = !together;
    x_word[0].value = x_word[1].value = 0;
    if (together && pthread_create(&thread, NULL, partner, &work) != 0) {
        fprintf(stderr, "synchronization: no thread\n");
        exit(3);
    }
    while (!__atomic_load_n(&x_ready, __ATOMIC_ACQUIRE))
        cpu_relax();
    uint64_t begin_ns = clock_ns();
    work(false);
    uint64_t ns = clock_ns() - begin_ns;
    if (together)
        pthread_join(thread, NULL);
    *total_ns += ns;
    return (double)ns / (double)count;
}

static void allocate(bool second)
{
    (void)second;
    for (uint64_t i = 0; i < rounds; i++) {
        void *block = malloc(24);
        sink(block);
        free(block);
    }
}

int main(int argc, char **argv)
{
    uint64_t ops = 200000;
    const struct arg args[] = {{"ops", ARG_COUNT, &ops, "rounds of each kind; a twentieth where threads may sleep"}};
    ARGS_READ("synchronization", argc, argv, args);
    if (ops < 20 || ops > 100000000)
        args_reject("ops", "20 to 100000000");
    if (!cpus_two(cpus)) {
        fprintf(stderr, "synchronization: skipped: needs two cpus\n");
        return 77;
    }
    sem_init(&semaphore[0], 0, 0);
    sem_init(&semaphore[1], 0, 0);
    cpu_of_thread_set(0, cpus[0]);
    uint64_t ns = 0, slow = ops / 20;
    double malloc_ns = timed(allocate, false, ops, &ns) / 2;
    double lock_ns = timed(lock_by_mutex, false, ops, &ns);
    double spin_lock_ns = timed(lock_by_spinning, false, ops, &ns);
    double lock_contended_ns = timed(lock_by_mutex, true, ops, &ns);
    double spin_lock_contended_ns = timed(lock_by_spinning, true, ops, &ns);
    uint64_t errors = guarded != 6 * ops;
    double semaphore_ns = timed(signal_by_semaphore, true, slow, &ns);
    double spin_semaphore_ns = timed(signal_by_spinning, true, slow, &ns);
    double condition_ns = timed(signal_by_condition, true, slow, &ns);
    double line_ns = timed(pass_a_line, true, slow, &ns);

    result_begin("synchronization", 2, 5 * ops + 4 * slow, ns);
    result_real("malloc_ns", malloc_ns);
    result_real("lock_ns", lock_ns);
    result_real("lock_contended_ns", lock_contended_ns);
    result_real("spin_lock_ns", spin_lock_ns);
    result_real("spin_lock_contended_ns", spin_lock_contended_ns);
    result_real("semaphore_ns", semaphore_ns / 2);
    result_real("spin_semaphore_ns", spin_semaphore_ns / 2);
    result_real("condition_ns", condition_ns);
    result_real("line_ns", line_ns);
    result_real("condition_in_mallocs", condition_ns / malloc_ns);
    result_real("line_in_mallocs", line_ns / malloc_ns);
    return result_end(errors);
}
