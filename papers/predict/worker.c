/* SPDX-License-Identifier: MIT
 *
 * Why: the second thread.  Its life is that of the engines' (papers/engines/manager.c, linked into this library):
 * started on the first need, asleep on a futex when there is nothing to do, out of the way of fork, never the reason
 * that a process does not end.  It serves all clients in turn: learns their history, and computes one answer of each.
 *
 * The list of clients is changed under the manager's `work` lock only, which a fork, a thread's end and predict_close()
 * take as well (manager_pause).  The lock is not held while a function computes: that may take long, and nobody waits
 * for it but predict_close() and exit().
 *
 * Guesses run ahead of what is known.  A guess for a call that has begun by now is taken for true and not computed, so
 * a worker that is slower than its caller computes every second call, and the caller the others.  When the history
 * turns out to differ from what was guessed, for more than one stray value, all answers not yet used are declared void,
 * and guessing begins anew after it.
 */
#include "client.h"
#include "say.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define STRAYS     1u /* wrong guesses in a row that are not yet a reason to begin anew */
#define VERDICT_NS 10000000

static struct predict_client *clients;   /* under the lock */
static struct predict_client *x_arrivals; /* pushed by anyone */
static const struct predict_function *x_computing;
static uint32_t x_crowded;
static bool stopped; /* nothing is computed any more; under the lock */

const char *engine_option(const char *name)
{
    return secure_getenv(name);
}

/* ---------------------------------------------------------------------------------------------------- one client */

static void begin_anew(struct predict_client *client)
{
    predictor_ahead_begin(&client->predictor);
    client->wrong_in_row = 0;
    client->next_number = client->learnt;
    STORE_RELAXED(&client->x_stalled, 0);
    STORE(&client->x_valid_from, client->x_answers_tail);
}

static bool learn_history(struct predict_client *client)
{
    uint64_t head = client->x_history_head, tail = LOAD(&client->x_history_tail);
    if (head == tail)
        return false;
    bool overtaken = false;
    for (; head != tail; head++) {
        const struct history *call = &client->history[head % HISTORY_SLOTS];
        predictor_learn(&client->predictor, call->key);
        overtaken |= call->number >= client->next_number;
        bool right =
            predict_keys_equal(client->issued[call->number % ISSUED_SLOTS], call->key, client->function->words);
        client->wrong_in_row = right ? 0 : client->wrong_in_row + 1;
        client->learnt = call->number + 1;
    }
    if (overtaken || client->wrong_in_row > STRAYS || (client->x_stalled && client->learnt >= client->next_number))
        begin_anew(client);
    STORE(&client->x_history_head, head);
    return true;
}

/* Answers declared void count no longer, but their slots are the caller's until it has passed them.  The one it passed
 * last it may be reading. */
static bool has_room(const struct predict_client *client)
{
    uint64_t tail = client->x_answers_tail, head = LOAD(&client->x_answers_head);
    uint64_t first = head > client->x_valid_from ? head : client->x_valid_from;
    return !stopped && tail - first < client->function->options.ahead && tail - head < ANSWER_SLOTS - 1;
}

/* A worker that has just begun what the caller then does itself is late at the next call as well, and so on: it leaves
 * that one to the caller, until it is ahead. */
static void choose_lead(struct predict_client *client, uint64_t begun)
{
    uint64_t refused = LOAD_RELAXED(&client->x_refused);
    if (refused != client->refused)
        client->lead = 1;
    else if (client->next_number > begun + 1)
        client->lead = 0;
    client->refused = refused;
}

/* The key of the first call that has not begun, and its number.  False: unknown. */
static bool guess(struct predict_client *client, uint64_t **key, uint64_t *number)
{
    uint64_t begun = LOAD_RELAXED(&client->x_begun);
    choose_lead(client, begun);
    do {
        *number = client->next_number;
        *key = client->issued[*number % ISSUED_SLOTS];
        if (*number - client->learnt >= ISSUED_SLOTS || !predictor_ahead(&client->predictor, *key)) {
            STORE_RELAXED(&client->x_stalled, 1);
            return false;
        }
        client->next_number++;
    } while (*number < begun + client->lead);
    return true;
}

static void compute(struct predict_function *function, struct answer *answer)
{
    uint32_t before = fp_environment();
    fp_set_environment((uint32_t)answer->key[function->words - 1]);
    errno = 0;
    bool done = function->compute(function->context, answer->key, answer->result);
    answer->error = errno;
    answer->flags = fp_flags_raised();
    fp_set_environment(before);
    STORE(&answer->x_state, done ? ANSWER_READY : ANSWER_NONE);
}

static bool answer_one(struct predict_client *client)
{
    struct predict_function *function = client->function;
    uint64_t *key, number;
    if (client->x_stalled || !has_room(client) || !guess(client, &key, &number))
        return false;
    struct answer *answer = &client->answers[client->x_answers_tail % ANSWER_SLOTS];
    answer->number = number;
    answer->began = ticks_now();
    memcpy(answer->key, key, function->words * sizeof *key);
    STORE_RELAXED(&answer->x_state, ANSWER_PENDING);
    STORE(&client->x_answers_tail, client->x_answers_tail + 1);
    STORE(&x_computing, function);
    manager_end();
    compute(function, answer);
    STORE(&x_computing, NULL);
    manager_begin();
    return true;
}

/* ---------------------------------------------------------------------------------------------------- all of them */

void client_free(struct predict_client *client)
{
    int saved = errno;
    if (client->memos != NULL)
        munmap(client->memos, client->memo_bytes);
    munmap(client, client->bytes);
    errno = saved;
}

static void push_arrival(struct predict_client *client)
{
    client->next = LOAD_RELAXED(&x_arrivals);
    while (!__atomic_compare_exchange_n(&x_arrivals, &client->next, client, true, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
        ;
}

void client_arrive(struct predict_client *client)
{
    client->listed = true;
    push_arrival(client);
    manager_wake(0);
}

static void take_arrivals(void)
{
    struct predict_client *client = __atomic_exchange_n(&x_arrivals, NULL, __ATOMIC_ACQUIRE);
    while (client != NULL) {
        struct predict_client *next = client->next;
        client->next = clients;
        clients = client;
        client = next;
    }
}

static bool serve_all(void)
{
    bool worked = false;
    if (UNLIKELY(LOAD_RELAXED(&x_arrivals) != NULL))
        take_arrivals();
    for (struct predict_client **link = &clients, *client; (client = *link) != NULL;) {
        if (UNLIKELY(LOAD(&client->x_retired))) {
            *link = client->next;
            client_free(client);
            continue;
        }
        if (client->function != NULL) {
            worked |= learn_history(client);
            worked |= answer_one(client);
        }
        link = &client->next;
    }
    return worked;
}

static bool wanted(void)
{
    if (LOAD_RELAXED(&x_arrivals) != NULL)
        return true;
    for (const struct predict_client *client = clients; client != NULL; client = client->next) {
        if (LOAD_RELAXED(&client->x_retired))
            return true;
        if (client->function != NULL &&
            (LOAD(&client->x_history_tail) != client->x_history_head || (!client->x_stalled && has_room(client))))
            return true;
    }
    return false;
}

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* The share of the time with work in which this thread had no processor: with more than a quarter there is none to
 * spare, and what it takes it takes from the program.  Not from /proc: the program may have forbidden to open files. */
static struct {
    uint64_t passed_ns, used_ns; /* since the last verdict */
    uint64_t seen_ns, seen_used_ns;
} busy;

static void busy_begins(void)
{
    busy.seen_ns = clock_ns(CLOCK_MONOTONIC);
    busy.seen_used_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

static void look_for_crowd(void)
{
    uint64_t seen_ns = busy.seen_ns, seen_used_ns = busy.seen_used_ns;
    busy_begins();
    busy.passed_ns += busy.seen_ns - seen_ns;
    busy.used_ns += busy.seen_used_ns - seen_used_ns;
    if (busy.passed_ns < VERDICT_NS)
        return;
    STORE_RELAXED(&x_crowded, busy.used_ns + busy.passed_ns / 4 < busy.passed_ns);
    busy.passed_ns = busy.used_ns = 0;
}

bool worker_is_crowded(void)
{
    return LOAD_RELAXED(&x_crowded) != 0;
}

static void serve(void)
{
    enum { ROUNDS_A_LOOK = 256 };
    uint32_t rounds = 0;
    fesetenv(FE_DFL_ENV); /* a thread begins with its maker's */
    manager_begin();
    do {
        busy_begins();
        while (serve_all()) {
            manager_checkpoint();
            if (++rounds % ROUNDS_A_LOOK == 0)
                look_for_crowd();
        }
        look_for_crowd();
    } while (manager_sleep(wanted));
    manager_end();
}

void worker_after_fork(bool (*keep)(struct predict_client *))
{
    manager_forget();
    take_arrivals();
    for (struct predict_client *client = clients, *next; client != NULL; client = next) {
        next = client->next;
        if (!keep(client))
            client_free(client);
    }
    clients = NULL;
    x_computing = NULL;
    x_crowded = 0;
}

/* NULL: any function. */
static void wait_until_left(const struct predict_function *function)
{
    const struct predict_function *computing;
    for (unsigned turn = 0; (computing = LOAD(&x_computing)) != NULL && (function == NULL || computing == function);)
        engine_relax(&turn);
}

void worker_forget(struct predict_function *function)
{
    manager_pause();
    take_arrivals();
    for (struct predict_client *client = clients; client != NULL; client = client->next) {
        if (client->function == function)
            client->function = NULL;
    }
    manager_resume();
    wait_until_left(function);
}

void worker_stop(void)
{
    manager_pause();
    stopped = true;
    manager_resume();
    wait_until_left(NULL);
}

const struct engine engine = {.name = "predict", .runs_functions = true, .manage = serve};
