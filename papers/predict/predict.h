/* SPDX-License-Identifier: MIT
 *
 * Why: the thesis (chapter 11) proposes to use a spare processor for a function that is slow and whose arguments follow
 * a pattern: a second thread predicts the arguments of the next calls and computes their results ahead.  This is the C
 * core of that; predict.hpp makes a C++ object of it, libm.c wraps the functions of libm.
 *
 * A function qualifies if its result depends on its arguments alone (and on the floating-point environment), if it has
 * no side effect, and if it may be called with arguments the program never passes, on another thread, and returns for
 * them: exit() waits for it.  Nobody checks that.
 *
 * A call is two halves around the original:
 *
 *     struct predict_call call = {.key = {argument}};
 *     if (predict_ask(&function, &call))
 *         return call.result[0];             computed ahead: for these very bits, in this very environment
 *     result = original(argument);
 *     call.result[0] = result;
 *     predict_done(&function, &call);
 *
 * What a caller sees is what the original would have done: the same bits, errno and floating-point exception flags.
 * The floating-point control word (rounding, denormals) is part of the key.  A call in an environment whose exceptions
 * trap goes to the original.
 *
 * Threads: any.  Each thread has its own history and its own answers for each function.  A call from a signal handler
 * that interrupted predict_ask or predict_done of its thread goes to the original.  No call takes a lock, allocates
 * with malloc or waits, but for the one that starts the second thread (only where no signal is blocked but those the
 * process began with: in a handler one is), and for an answer that is being computed (never longer than the original
 * takes).
 */
#ifndef PREDICT_PREDICT_H
#define PREDICT_PREDICT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PREDICT_ARGUMENTS 7 /* words of arguments, at most */
#define PREDICT_WORDS     8 /* words of a key: the arguments, then the floating-point environment */
#define PREDICT_RESULTS   8 /* words of a result, at most */
#define PREDICT_FUNCTIONS 64 /* functions in one process; further ones are never predicted */

/* How a word of a key is added to: what a stride is. */
enum predict_kind { PREDICT_OPAQUE, PREDICT_INTEGER, PREDICT_DOUBLE, PREDICT_FLOAT };

enum predict_mode {
    PREDICT_AUTO,   /* by measurement */
    PREDICT_OFF,    /* never */
    PREDICT_FORCED, /* always, whether it pays or not: for tests and measurements */
};

/* Zero in any field stands for its default. */
struct predict_options {
    uint32_t mode;      /* enum predict_mode */
    uint32_t ahead;     /* results computed ahead of the program: 32, at most 256 */
    uint32_t handover;  /* calls after which the second thread is given the arguments of the last ones: 4, at most 64 */
    uint32_t memo;      /* results of former calls to keep, a power of two: none.  The flags that were raised before a call
                         * are then lost if the original leaves by an exception or a longjmp */
    uint32_t order;     /* of the context predictor: 3, at most 8 */
    uint32_t threshold; /* calls of a thread before it asks for the second thread: 512 */
    uint32_t floor_ns;  /* a function that takes less is left alone: 400 */
};

/* Computes the result of one call on the second thread.  False: no result (the function threw). */
typedef bool predict_compute(void *context, const uint64_t *arguments, uint64_t *result);

/* Set up by predict_open(); must stay where it is until predict_close(). */
struct predict_function {
    const char *name;
    predict_compute *compute;
    void *context;
    uint8_t kinds[PREDICT_WORDS];
    uint32_t words, results; /* of a key, the environment included; of a result */
    uint32_t slot;
    struct predict_options options;
    uint32_t x_off;   /* not zero: every call goes to the original */
    uint32_t x_votes; /* threads for which it did not pay */
    uint64_t x_calls, x_hits, x_memo_hits, x_late, x_wrong, x_threads, x_off_after_us;
};

struct predict_client;

struct predict_call {
    uint64_t key[PREDICT_WORDS];
    uint64_t result[PREDICT_RESULTS];
    /* private */
    struct predict_client *client;
    uint64_t began;
    int error;
    uint32_t flags, why;
};

struct predict_counts {
    uint64_t calls;     /* seen, not counting those after it was switched off */
    uint64_t hits;      /* answered with a result computed ahead */
    uint64_t memo_hits; /* answered with the result of a former call */
    uint64_t late;      /* predicted, but the result was not there in time */
    uint64_t wrong;     /* predicted otherwise */
    uint64_t threads;   /* for which results were computed ahead */
    uint64_t off_after_us; /* from the start of computing ahead to the end of the last trial that did not pay */
    bool off;
};

/* Makes `function` ready.  `arguments` and `results` count words; `kinds` has one entry an argument. */
void predict_open(struct predict_function *function, const char *name, predict_compute *compute, void *context,
                  size_t arguments, size_t results, const enum predict_kind *kinds,
                  const struct predict_options *options);

/* No call may be in progress or follow.  Returns when the second thread is no longer in the function, which it may be
 * with arguments of its own choice. */
void predict_close(struct predict_function *function);

/* True: call->result is the answer.  False: compute it, then say predict_done(), or leave it at that (an exception, a
 * longjmp): the call then counts for nothing. */
bool predict_ask(struct predict_function *function, struct predict_call *call);
void predict_done(struct predict_function *function, struct predict_call *call);

/* Exact for the calling thread; other threads' latest calls may be missing. */
void predict_count(struct predict_function *function, struct predict_counts *counts);

/* Returns when the second thread has computed all it can from the calling thread's history of `function`, or after
 * `ms`: for tests. */
bool predict_settle(struct predict_function *function, unsigned ms);

/* The options that environment variables say (SUTLER_PREDICT, SUTLER_PREDICT_AHEAD and so on). */
struct predict_options predict_options_from_environment(void);

#ifdef __cplusplus
}
#endif
#endif
