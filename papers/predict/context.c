/* SPDX-License-Identifier: MIT
 *
 * Why: see context.h.
 */
#include "context.h"

#include <string.h>

#define SEED UINT64_C(0x9E3779B97F4A7C15)

static bool same(const struct context *context, const uint64_t *a, const uint64_t *b)
{
    for (uint32_t i = 0; i < context->words; i++) {
        if (a[i] != b[i])
            return false;
    }
    return true;
}

static void copy(const struct context *context, uint64_t *to, const uint64_t *from)
{
    memcpy(to, from, context->words * sizeof *to);
}

static uint32_t place_of(uint32_t row, uint32_t column)
{
    return row * (CONTEXT_COLUMNS + 1) + column;
}

static uint32_t row_of(uint32_t place)
{
    return place / (CONTEXT_COLUMNS + 1);
}

static uint32_t column_of(uint32_t place)
{
    return place % (CONTEXT_COLUMNS + 1);
}

/* ------------------------------------------------------------------------------------------------------- the index */

/* The bucket of `length` values. */
static uint32_t bucket_of(const struct context *context, const uint64_t (*values)[PREDICT_WORDS], uint32_t length)
{
    uint64_t hash = length;
    for (uint32_t i = 0; i < length; i++) {
        for (uint32_t word = 0; word < context->words; word++)
            hash = (hash ^ values[i][word] ^ hash >> 29) * SEED;
    }
    return (uint32_t)(hash >> 40) & (CONTEXT_BUCKETS - 1);
}

/* The `length` values that stand before a place. */
static const uint64_t (*values_before(const struct context *context, uint32_t place, uint32_t length))[PREDICT_WORDS]
{
    return (const uint64_t(*)[PREDICT_WORDS]) & context->values[row_of(place)][column_of(place) - length];
}

static bool stands_before(const struct context *context, uint32_t place, const uint64_t (*values)[PREDICT_WORDS],
                          uint32_t length)
{
    if (column_of(place) < length)
        return false;
    const uint64_t(*there)[PREDICT_WORDS] = values_before(context, place, length);
    for (uint32_t i = length; i-- > 0;) { /* the newest first: it differs most often */
        if (!same(context, there[i], values[i]))
            return false;
    }
    return true;
}

static uint32_t find(const struct context *context, const uint64_t (*values)[PREDICT_WORDS], uint32_t length)
{
    uint32_t link = context->heads[bucket_of(context, values, length)];
    while (link > 1) {
        uint32_t node = link - 2, place = node / CONTEXT_ORDER;
        if (node % CONTEXT_ORDER + 1 == length && stands_before(context, place, values, length))
            return place;
        link = context->links[node];
    }
    return CONTEXT_NOWHERE;
}

static void enter(struct context *context, uint32_t place, uint32_t length)
{
    uint32_t *head = &context->heads[bucket_of(context, values_before(context, place, length), length)];
    uint32_t node = place * CONTEXT_ORDER + length - 1;
    context->links[node] = *head > 1 ? *head : 1;
    *head = node + 2;
}

static void leave(struct context *context, uint32_t place, uint32_t length)
{
    uint32_t node = place * CONTEXT_ORDER + length - 1;
    if (context->links[node] == 0)
        return;
    uint32_t *link = &context->heads[bucket_of(context, values_before(context, place, length), length)];
    while (*link != node + 2)
        link = &context->links[*link - 2];
    *link = context->links[node];
    context->links[node] = 0;
}

/* ----------------------------------------------------------------------------------------------------- the matching */

/* The newest `length` values of a walk. */
static const uint64_t (*newest(const struct context_walk *walk, uint32_t length))[PREDICT_WORDS]
{
    return (const uint64_t(*)[PREDICT_WORDS]) & walk->value[walk->count - length];
}

static bool goes_on(const struct context *context, uint32_t place)
{
    return column_of(place) < context->length[row_of(place)];
}

static void match(const struct context *context, struct context_walk *walk)
{
    walk->place = CONTEXT_NOWHERE;
    for (uint32_t length = walk->count; length > 0; length--) {
        uint32_t place = find(context, newest(walk, length), length);
        if (place == CONTEXT_NOWHERE)
            continue;
        if (walk->place == CONTEXT_NOWHERE || goes_on(context, place))
            walk->place = place;
        if (goes_on(context, place))
            return;
    }
}

static void remember(const struct context *context, struct context_walk *walk, const uint64_t *value)
{
    if (walk->count == context->order)
        memmove(walk->value[0], walk->value[1], (context->order - 1) * sizeof walk->value[0]);
    else
        walk->count++;
    copy(context, walk->value[walk->count - 1], value);
}

/* The row's most frequent values, each once, in the order of the row; returns how many. */
static uint32_t most_frequent(const struct context *context, uint32_t row, uint8_t columns[CONTEXT_COLUMNS])
{
    uint32_t length = context->length[row], most = 0, found = 0;
    uint8_t counts[CONTEXT_COLUMNS];
    for (uint32_t i = 0; i < length; i++) {
        uint32_t first = 0;
        counts[i] = 0;
        while (!same(context, context->values[row][first], context->values[row][i]))
            first++;
        counts[first]++;
        if (counts[first] > most)
            most = counts[first];
    }
    for (uint32_t i = 0; i < length; i++) {
        if (counts[i] == most)
            columns[found++] = (uint8_t)i;
    }
    return found;
}

static uint64_t draw(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static void make_guess(struct context *context)
{
    uint32_t place = context->now.place;
    context->guesses = place != CONTEXT_NOWHERE;
    if (!context->guesses)
        return;
    uint32_t row = row_of(place), column = column_of(place);
    if (!goes_on(context, place)) {
        uint8_t columns[CONTEXT_COLUMNS];
        uint32_t found = most_frequent(context, row, columns);
        column = columns[found > 1 ? draw(&context->random) % found : 0];
    }
    copy(context, context->guess, context->values[row][column]);
}

/* ----------------------------------------------------------------------------------------------------- the learning */

/* A row to begin a new context in. */
static uint32_t new_row(struct context *context)
{
    if (context->rows < CONTEXT_ROWS)
        return context->rows++;
    uint32_t row = context->oldest;
    context->oldest = (row + 1) % CONTEXT_ROWS;
    for (uint32_t column = 0; column <= context->length[row]; column++) {
        context->doubted[place_of(row, column)] = false;
        for (uint32_t length = 1; length <= context->order && length <= column; length++)
            leave(context, place_of(row, column), length);
    }
    context->length[row] = 0;
    return row;
}

static uint32_t append(struct context *context, uint32_t row, const uint64_t *value)
{
    copy(context, context->values[row][context->length[row]++], value);
    return place_of(row, context->length[row]);
}

/* A context of the last values and what followed them; returns the place after it. */
static uint32_t add_context(struct context *context, const uint64_t *value)
{
    const struct context_walk *now = &context->now;
    uint32_t row = new_row(context), place = place_of(row, 0);
    for (uint32_t i = 0; i < now->count; i++)
        place = append(context, row, now->value[i]);
    for (uint32_t length = 1; length <= now->count; length++) {
        uint32_t old = find(context, newest(now, length), length);
        if (old != CONTEXT_NOWHERE)
            leave(context, old, length);
        enter(context, place, length);
    }
    return append(context, row, value);
}

/* The value was not foreseen.  Returns the place after where it was put, if it was. */
static uint32_t correct(struct context *context, const uint64_t *value)
{
    uint32_t place = context->now.place, row = row_of(place);
    if (place == CONTEXT_NOWHERE)
        return add_context(context, value);
    if (!goes_on(context, place))
        return context->length[row] < CONTEXT_COLUMNS ? append(context, row, value) : add_context(context, value);
    context->doubted[place] = !context->doubted[place];
    return context->doubted[place] ? CONTEXT_NOWHERE : add_context(context, value);
}

void context_start(struct context *context, uint32_t words, uint32_t order)
{
    context->words = words;
    context->order = order;
    context->random = SEED;
    context->now.place = CONTEXT_NOWHERE;
}

void context_learn(struct context *context, const uint64_t *value)
{
    struct context_walk *now = &context->now;
    uint32_t after = CONTEXT_NOWHERE;
    if (context->guesses && same(context, context->guess, value))
        context->doubted[now->place] = false;
    else
        after = correct(context, value);
    remember(context, now, value);
    if (after != CONTEXT_NOWHERE) {
        for (uint32_t length = 1; length <= now->count; length++) {
            if (stands_before(context, after, newest(now, length), length) &&
                find(context, newest(now, length), length) == CONTEXT_NOWHERE)
                enter(context, after, length);
        }
    }
    match(context, now);
    make_guess(context);
}

bool context_walk_on(const struct context *context, struct context_walk *walk, uint64_t *value)
{
    if (walk->place == CONTEXT_NOWHERE)
        return false;
    uint32_t row = row_of(walk->place), column = column_of(walk->place);
    if (!goes_on(context, walk->place)) {
        uint8_t columns[CONTEXT_COLUMNS];
        if (most_frequent(context, row, columns) != 1)
            return false;
        column = columns[0];
    }
    copy(context, value, context->values[row][column]);
    remember(context, walk, value);
    match(context, walk);
    return true;
}
