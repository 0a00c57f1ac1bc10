/* SPDX-License-Identifier: MIT
 *
 * Why: a benchmark's random numbers must cost less than what it measures, and a run must be repeatable from its seed.
 * So: xorshift64* with one word of state per worker (about a nanosecond a number, no lock, nothing shared), seeded
 * through a mixer so that neighbouring seeds give unrelated streams.  Not for statistics, not for secrets.
 */
#ifndef BENCH_RANDOM_H
#define BENCH_RANDOM_H

#include <stdint.h>

struct random_source {
    uint64_t state; /* never zero */
};

static inline void random_seed(struct random_source *source, uint64_t seed)
{
    uint64_t mixed = seed + 0x9e3779b97f4a7c15u;
    mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9u;
    mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebu;
    mixed ^= mixed >> 31;
    source->state = mixed ? mixed : 1;
}

static inline uint64_t random_next(struct random_source *source)
{
    uint64_t x = source->state;
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    source->state = x;
    return x * 0x2545f4914f6cdd1du;
}

/* Uniform in [0, bound) for bound < 2^32 (the bias, bound / 2^32, is of no interest here). */
static inline uint64_t random_below(struct random_source *source, uint64_t bound)
{
    return ((random_next(source) >> 32) * bound) >> 32;
}

/* Uniform in [low, high], both ends included. */
static inline uint64_t random_between(struct random_source *source, uint64_t low, uint64_t high)
{
    return low + random_below(source, high - low + 1);
}

#endif
