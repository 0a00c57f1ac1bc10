/* SPDX-License-Identifier: MIT
 *
 * Why: what the next value of a sequence will be, from the values before.  A value is a few 64-bit words (a function's
 * arguments); values are equal when their bits are.  One `struct predictor` follows one sequence with three methods and
 * scores them; nothing here knows of threads, functions or time, and the offline replay (replay.c) uses the same code.
 *
 *   last      the last value again
 *   stride    the last value plus a constant; the constant is replaced when it was wrong (not confirmed twice: a loop's
 *             first two values are enough)
 *   context   the value that followed the same values before (context.h)
 *
 * Score: 0 to 65535.  After each value a method that had foreseen it goes up by an eighth of what is left above, one
 * that had not goes down by an eighth.  The best is the one with the highest score, of equals the first in the list
 * above.
 *
 * A run of guesses ahead (predictor_ahead_*) follows the best method and takes each guess for the truth.  It ends where
 * the method has no guess, or only one drawn by lot.
 */
#ifndef PREDICT_PREDICTORS_H
#define PREDICT_PREDICTORS_H

#include "context.h"

enum { METHOD_LAST, METHOD_STRIDE, METHOD_CONTEXT, METHODS };
extern const char *const predictor_names[METHODS];

struct predictor {
    uint32_t words;
    uint8_t kinds[PREDICT_WORDS];
    bool started;
    uint32_t scores[METHODS];
    uint64_t seen, right[METHODS], right_best;
    uint64_t last[PREDICT_WORDS];
    uint64_t stride[PREDICT_WORDS]; /* bits of a number of the word's kind */
    struct {
        unsigned method;
        uint64_t value[PREDICT_WORDS];
        struct context_walk walk;
    } ahead;
    struct context context;
};

/* `predictor` is zeroed memory. */
void predictor_start(struct predictor *predictor, uint32_t words, const uint8_t *kinds, uint32_t order);
void predictor_learn(struct predictor *predictor, const uint64_t *value);
unsigned predictor_best(const struct predictor *predictor);

/* ahead_begin: guesses now begin after what was learnt last. */
void predictor_ahead_begin(struct predictor *predictor);
bool predictor_ahead(struct predictor *predictor, uint64_t *value);

#endif
