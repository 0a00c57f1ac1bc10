/* SPDX-License-Identifier: MIT
 *
 * A random stream a test can repeat: one word of state, so that each thread owns its own and a printed seed rebuilds
 * every decision (splitmix64's recurrence; quality beyond "no visible pattern" is not needed here).
 */
#ifndef TESTS_RNG_H
#define TESTS_RNG_H

#include <stddef.h>
#include <stdint.h>

struct rng {
    uint64_t state;
};

static inline uint64_t rng_next(struct rng *rng)
{
    uint64_t z = rng->state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static inline size_t rng_below(struct rng *rng, size_t bound)
{
    return (size_t)(rng_next(rng) % bound);
}

/* Sizes as programs ask for them: mostly small, each doubling about as likely as the next, up to 2^max_bits. */
static inline size_t rng_size(struct rng *rng, unsigned max_bits)
{
    unsigned bits = (unsigned)rng_below(rng, max_bits + 1);
    /* Two dice: the smaller wins, so that the large sizes stay rare. */
    unsigned other = (unsigned)rng_below(rng, max_bits + 1);
    if (other < bits)
        bits = other;
    return rng_below(rng, (size_t)1 << bits) + (rng_next(rng) & 1);
}

#endif
