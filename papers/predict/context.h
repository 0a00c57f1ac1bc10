/* SPDX-License-Identifier: MIT
 *
 * Why: the context predictor of the thesis (figure 11.1, appendix D), after Sazeides and Smith.  The contexts are the
 * rows of a matrix, each a finite sequence of values.  The last values are compared with the contexts:
 *
 *   - The best match is the place in a row before which as many of the last values stand as possible, at most `order`,
 *     and where the row goes on.  Only if it goes on at none, a place where it ends.
 *   - If the row goes on there, the guess is its next value.  If it ends there, the guess is the row's most frequent
 *     value; of several equally frequent ones a random one.
 *   - If there is no match, there is no guess.
 *
 * Then the value comes.  If it was guessed, nothing changes.  If it was not:
 *
 *   - If the match is at the end of a row with room, the value is appended: the context is made longer.
 *   - If the row goes on, but was right the last time, it is only doubted: one stray value changes nothing.
 *   - Else a context is added: a row that begins with the last values (as many as there are, at most `order`) and goes
 *     on with the value.  From now on these last values, and each shorter ending of them, lead to the new row: that
 *     corrects the old one.  The oldest row makes room if all are used.
 *   - The place after the value is where the values before it lead to, as far as they lead nowhere yet, and as far as
 *     the row holds the values that really came.
 *
 * An index leads from the last 1, 2, ... `order` values to a place: chained hashing, compared in full, so that nothing
 * depends on the hash.  A node is a place and a length; its links are in an array beside the matrix.
 */
#ifndef PREDICT_CONTEXT_H
#define PREDICT_CONTEXT_H

#include "predict.h"

#define CONTEXT_ORDER   8 /* at most */
#define CONTEXT_ROWS    512
#define CONTEXT_COLUMNS 32
#define CONTEXT_PLACES  (CONTEXT_ROWS * (CONTEXT_COLUMNS + 1)) /* place = row * (COLUMNS + 1) + values before it */
#define CONTEXT_BUCKETS (1u << 14)
#define CONTEXT_NOWHERE UINT32_MAX

/* The last values of a sequence, the newest at [count - 1], and where they lead. */
struct context_walk {
    uint32_t count, place;
    uint64_t value[CONTEXT_ORDER][PREDICT_WORDS];
};

struct context {
    uint32_t words, order;
    uint32_t rows, oldest; /* rows in use; the next to be used again */
    uint64_t random;
    struct context_walk now;
    bool guesses;                  /* whether there is a guess */
    uint64_t guess[PREDICT_WORDS]; /* for the next value */
    uint8_t length[CONTEXT_ROWS];
    bool doubted[CONTEXT_PLACES]; /* what follows was not foreseen when the place was met last */
    uint32_t heads[CONTEXT_BUCKETS];                /* node + 2; 0 or 1: none */
    uint32_t links[CONTEXT_PLACES * CONTEXT_ORDER]; /* node = place * ORDER + length - 1; 0: not in the index, 1: the last */
    uint64_t values[CONTEXT_ROWS][CONTEXT_COLUMNS][PREDICT_WORDS];
};

/* `context` is zeroed memory. */
void context_start(struct context *context, uint32_t words, uint32_t order);
void context_learn(struct context *context, const uint64_t *value);

/* One guess beyond `walk`, which takes it for the truth.  False: none, or only one by lot. */
bool context_walk_on(const struct context *context, struct context_walk *walk, uint64_t *value);

#endif
