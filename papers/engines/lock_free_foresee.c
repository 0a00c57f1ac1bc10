/* SPDX-License-Identifier: MIT
 *
 * Why: a bin of the thesis grows by one block with each miss, so a program that wants now these sizes and now those
 * pays for its bins with thousands of misses.  Chapter 10 proposes to "analyze the memory allocation behavior of a
 * program over longer periods of time to identify usage patterns" and to adjust bin sizes "in preparation for future
 * allocation loads", and leaves open how.  This does it as its chapter 11 foresees arguments, by context:
 *
 * A period is the time from one refresh to the next, about a thousand mallocs.  Of each of the last periods the manager
 * keeps how many blocks each bin gave out, and as its pattern the bins that gave out an eighth of all or more.  Where
 * the periods just past are the end of a sequence of patterns that was there before, the same is expected to follow
 * that followed then; of several such places the one counts that agrees over the longest stretch, and of those the
 * latest.  Each bin may hold what is expected of it, and the refresh that is under way fills it to that.
 *
 * A bin that is expected to give out nothing keeps its size; SUTLER_LFB=shrink,foresee makes it smaller when it rests.
 *
 * Only a heap's manager is here, or a forked child before it has one.
 */
#include "lock_free_bins.h"

#define PERIODS 128u /* that are remembered, in a ring */

struct period {
    uint64_t pattern;
    uint16_t taken[LFB_BINS];
};

static struct history {
    struct period periods[PERIODS];
    uint32_t count;            /* periods so far; the newest is number count - 1 */
    uint64_t before[LFB_BINS]; /* blocks each bin had given out when the last period ended */
} histories[MANAGERS_MOST];

static struct period *period(struct history *history, uint32_t number)
{
    return &history->periods[number % PERIODS];
}

/* Adds the period that ends now. */
static void note(struct history *history, struct heap *heap)
{
    struct period *now = period(history, history->count++);
    uint32_t all = 0;
    for (unsigned i = 0; i < LFB_BINS; i++) {
        uint64_t given = LOAD(&heap->bins[i].reserved) - heap->bins[i].drawn;
        uint64_t taken = given - history->before[i];
        history->before[i] = given;
        now->taken[i] = (uint16_t)(taken < BIN_SIZE_MOST ? taken : BIN_SIZE_MOST);
        all += now->taken[i];
    }
    now->pattern = 0;
    for (unsigned i = 0; i < LFB_BINS; i++) {
        if (now->taken[i] > 0 && now->taken[i] >= all / 8)
            now->pattern |= (uint64_t)1 << i;
    }
}

/* For how many periods those up to number `then` were as those up to the newest. */
static uint32_t agreement(struct history *history, uint32_t then, uint32_t oldest)
{
    uint32_t newest = history->count - 1, length = 0;
    while (length <= then - oldest &&
           period(history, then - length)->pattern == period(history, newest - length)->pattern)
        length++;
    return length;
}

/* The period after the best place; NULL: nothing is like now. */
static const struct period *find_next(struct history *history)
{
    uint32_t newest = history->count - 1, oldest = history->count > PERIODS ? history->count - PERIODS : 0;
    uint32_t longest = 0, best = 0;
    for (uint32_t then = oldest; then < newest; then++) {
        uint32_t length = agreement(history, then, oldest);
        if (length > 0 && length >= longest) {
            longest = length;
            best = then;
        }
    }
    return longest > 0 ? period(history, best + 1) : NULL;
}

void foresee(unsigned which)
{
    struct history *history = &histories[which];
    struct heap *heap = &lfb_heaps[which];
    note(history, heap);
    const struct period *next = find_next(history);
    for (unsigned i = 0; i < LFB_BINS; i++) {
        struct bin *bin = &heap->bins[i];
        uint32_t most = bin_size_most(lfb_block_bytes(i)), expected = next != NULL ? next->taken[i] : 0;
        bin->expected = expected < most ? expected : most;
        uint32_t size = LOAD_RELAXED(&bin->size);
        if (size < bin->expected)
            __atomic_fetch_add(&bin->size, bin->expected - size, __ATOMIC_RELAXED);
    }
}

void foresee_forget(unsigned which)
{
    histories[which].count = 0;
    for (unsigned i = 0; i < LFB_BINS; i++) {
        histories[which].before[i] = 0;
        lfb_heaps[which].bins[i].expected = 0;
    }
}
