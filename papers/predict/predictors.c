/* SPDX-License-Identifier: MIT
 *
 * Why: see predictors.h.
 */
#include "predictors.h"
#include "bits.h"

#include <math.h>
#include <string.h>

const char *const predictor_names[METHODS] = {"last", "stride", "context"};

#define SCORE_MOST 65535u

/* What leads from one word to the next, and the word it leads to.  A number that is not finite has a stride of none. */
static uint64_t stride_between(enum predict_kind kind, uint64_t from, uint64_t to)
{
    switch (kind) {
    case PREDICT_INTEGER:
        return to - from;
    case PREDICT_DOUBLE: {
        double stride = double_of_bits(to) - double_of_bits(from);
        return isfinite(stride) ? bits_of_double(stride) : 0;
    }
    case PREDICT_FLOAT: {
        float stride = float_of_bits(to) - float_of_bits(from);
        return isfinite(stride) ? bits_of_float(stride) : 0;
    }
    default:
        return 0;
    }
}

static uint64_t stride_added(enum predict_kind kind, uint64_t word, uint64_t stride)
{
    if (stride == 0) /* also keeps -0 and NaN as they are */
        return word;
    switch (kind) {
    case PREDICT_INTEGER:
        return word + stride;
    case PREDICT_DOUBLE:
        return bits_of_double(double_of_bits(word) + double_of_bits(stride));
    case PREDICT_FLOAT:
        return bits_of_float(float_of_bits(word) + float_of_bits(stride));
    default:
        return word;
    }
}

static bool same(const struct predictor *predictor, const uint64_t *a, const uint64_t *b)
{
    return memcmp(a, b, predictor->words * sizeof *a) == 0;
}

static void copy(const struct predictor *predictor, uint64_t *to, const uint64_t *from)
{
    memcpy(to, from, predictor->words * sizeof *to);
}

static void stride_guess(const struct predictor *predictor, const uint64_t *after, uint64_t *guess)
{
    for (uint32_t i = 0; i < predictor->words; i++)
        guess[i] = stride_added(predictor->kinds[i], after[i], predictor->stride[i]);
}

static void stride_learn(struct predictor *predictor, const uint64_t *value)
{
    for (uint32_t i = 0; i < predictor->words; i++)
        predictor->stride[i] = stride_between(predictor->kinds[i], predictor->last[i], value[i]);
}

static void score(struct predictor *predictor, unsigned method, bool right)
{
    uint32_t *points = &predictor->scores[method];
    if (right) {
        *points += (SCORE_MOST - *points) / 8;
        predictor->right[method]++;
    } else {
        *points -= *points / 8;
    }
}

void predictor_start(struct predictor *predictor, uint32_t words, const uint8_t *kinds, uint32_t order)
{
    predictor->words = words;
    memcpy(predictor->kinds, kinds, words);
    context_start(&predictor->context, words, order);
}

unsigned predictor_best(const struct predictor *predictor)
{
    unsigned best = 0;
    for (unsigned i = 1; i < METHODS; i++) {
        if (predictor->scores[i] > predictor->scores[best])
            best = i;
    }
    return best;
}

void predictor_learn(struct predictor *predictor, const uint64_t *value)
{
    bool right[METHODS] = {false};
    if (predictor->started) {
        uint64_t guess[PREDICT_WORDS] = {0};
        stride_guess(predictor, predictor->last, guess);
        right[METHOD_LAST] = same(predictor, predictor->last, value);
        right[METHOD_STRIDE] = same(predictor, guess, value);
        right[METHOD_CONTEXT] = predictor->context.guesses && same(predictor, predictor->context.guess, value);
        if (!right[METHOD_STRIDE])
            stride_learn(predictor, value);
    }
    predictor->seen++;
    predictor->right_best += right[predictor_best(predictor)];
    for (unsigned i = 0; i < METHODS; i++)
        score(predictor, i, right[i]);
    copy(predictor, predictor->last, value);
    predictor->started = true;
    context_learn(&predictor->context, value);
}

void predictor_ahead_begin(struct predictor *predictor)
{
    predictor->ahead.method = predictor_best(predictor);
    copy(predictor, predictor->ahead.value, predictor->last);
    predictor->ahead.walk = predictor->context.now;
}

bool predictor_ahead(struct predictor *predictor, uint64_t *value)
{
    if (!predictor->started)
        return false;
    switch (predictor->ahead.method) {
    case METHOD_LAST:
        copy(predictor, value, predictor->last);
        return true;
    case METHOD_STRIDE:
        stride_guess(predictor, predictor->ahead.value, value);
        copy(predictor, predictor->ahead.value, value);
        return true;
    default:
        return context_walk_on(&predictor->context, &predictor->ahead.walk, value);
    }
}
