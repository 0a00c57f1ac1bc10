/* SPDX-License-Identifier: MIT
 *
 * Why: a client is one thread's use of one function, seen from both sides: the caller's (caller.h) and that of the
 * second thread (worker.c).  Between them are two rings, each with one producer and one consumer, and nothing else:
 *
 *   history   caller -> worker   {call's number, key}: what the arguments were.  Published every `handover` calls.  When
 *                                it is full the caller leaves entries out: the numbers show the gap.
 *   answers   worker -> caller   {call's number, key, result, errno, flags}.  An entry is published before its result is
 *                                computed, so that a caller who comes meanwhile knows to wait, then marked as ready.
 *
 * Neither side ever waits for the other, but for the caller that finds its answer being computed: it waits if about
 * half of that is done, and no longer than the original takes.  So a worker that is late, asleep or (in the child of a
 * _Fork) missing only means no answers.
 *
 * A field is written by one side.  `x_` marks those the other side reads.  A client begins watched: calls are counted
 * and timed, there is no second thread.  After `threshold` calls of a function slow enough it is given rings and put on
 * the worker's list.  When it does not pay, or the thread ends, it is retired; the worker frees it.
 */
#ifndef PREDICT_CLIENT_H
#define PREDICT_CLIENT_H

#include "engine.h"
#include "machine.h"
#include "manager.h"
#include "predict.h"
#include "predictors.h"

#define HISTORY_SLOTS 1024u /* a power of two */
#define ISSUED_SLOTS  2048u /* a power of two, more than HISTORY_SLOTS and the most that is computed ahead */
#define ANSWER_SLOTS  512u /* twice AHEAD_MOST: void answers keep their slots until the caller comes by */
#define AHEAD_MOST    256u /* answers that are kept ahead */
#define COST_SAMPLES  64u

struct history {
    uint64_t number;
    uint64_t key[PREDICT_WORDS];
};

enum { ANSWER_PENDING, ANSWER_READY, ANSWER_NONE /* the function threw */ };

struct answer {
    _Alignas(64) uint64_t number;
    uint64_t began; /* ticks */
    uint32_t x_state;
    int error; /* errno that the function set, or 0 */
    uint32_t flags;
    uint64_t key[PREDICT_WORDS];
    uint64_t result[PREDICT_RESULTS];
};

struct memo {
    bool used;
    int error;
    uint32_t flags;
    uint64_t key[PREDICT_WORDS];
    uint64_t result[PREDICT_RESULTS];
};

/* What a review compares: time per call as it is, and as it is without (in every so many calls that are let alone). */
struct trial {
    uint64_t with_ticks, with_calls;
    uint64_t plain_ticks, plain_calls;
    uint64_t answers; /* without one a gain is chance */
    uint64_t began;
};

struct predict_client {
    /* the caller's */
    struct predict_function *function;
    uint64_t calls;
    bool running, listed;
    uint64_t cost_ticks; /* of one call of the original, about */
    uint32_t samples[COST_SAMPLES];
    uint64_t history_next, history_published, answers_head;
    uint32_t timed_mask, plain_mask; /* a call is timed, or left alone, when its number has none of these bits */
    struct trial trial;
    uint64_t running_since, paid_until, review_ticks, hidden_ticks;
    unsigned bad_reviews;
    bool paid, resting;
    uint64_t rest_ticks, rest_until; /* when it has paid once, but does no longer */
    uint32_t rest_calls;
    uint64_t hits, memo_hits, late, wrong; /* since they were last added to the function's */
    uint64_t counted_calls;
    struct memo *memos;
    size_t memo_bytes, bytes;
    struct predict_client *next; /* on the worker's list, or among the arrivals */

    /* written by the caller at every call, read by the worker */
    _Alignas(64) uint64_t x_begun; /* calls that have begun: those with lower numbers need no answer */
    uint64_t x_history_tail;
    uint64_t x_answers_head;
    uint64_t x_refused; /* answers that had only just been begun when the caller came */
    uint32_t x_retired;

    /* written by the worker */
    _Alignas(64) uint64_t x_answers_tail;
    uint64_t x_valid_from; /* answers before this one are for a history that did not happen */
    uint64_t x_history_head;
    uint32_t x_stalled; /* no guess is left until more is known */
    uint64_t next_number; /* of the next call to guess */
    uint64_t learnt;      /* number of the last call known, + 1 */
    uint32_t wrong_in_row;
    uint64_t refused; /* x_refused when it was last looked at */
    uint64_t lead;    /* calls not yet begun that are left to the caller: 0 or 1 */

    struct history history[HISTORY_SLOTS];
    struct answer answers[ANSWER_SLOTS];
    uint64_t issued[ISSUED_SLOTS][PREDICT_WORDS];
    struct predictor predictor;
};

/* worker.c */
void client_free(struct predict_client *client);
void client_arrive(struct predict_client *client);           /* the worker serves it from now on */
void worker_after_fork(bool (*keep)(struct predict_client *)); /* in the child: frees every client but those to keep */
void worker_forget(struct predict_function *function);       /* returns when the worker has left it for good */
void worker_stop(void);                                      /* the same for all functions there are and will be */
bool worker_is_crowded(void); /* the worker had to wait for a processor lately: there is none to spare */

static inline bool predict_keys_equal(const uint64_t *a, const uint64_t *b, uint32_t words)
{
    for (uint32_t i = 0; i < words; i++) {
        if (a[i] != b[i])
            return false;
    }
    return true;
}

#endif
