/* SPDX-License-Identifier: MIT
 *
 * Why: the tail of a latency is what users feel, and keeping every sample would cost the very page faults being
 * measured.  So: counts by exponent and 32 linear steps within it (values exact below 64, within 3 % above), 16 KiB in
 * all, recorded in a few instructions.  The longest sample is kept exactly.
 */
#ifndef BENCH_HISTOGRAM_H
#define BENCH_HISTOGRAM_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { HISTOGRAM_STEP_BITS = 5, HISTOGRAM_CELLS = (64 - HISTOGRAM_STEP_BITS + 1) << HISTOGRAM_STEP_BITS };

struct histogram {
    uint64_t samples;
    uint64_t longest_ns;
    uint64_t over_50us;
    uint64_t cell[HISTOGRAM_CELLS];
};

static inline void histogram_add(struct histogram *histogram, uint64_t ns)
{
    unsigned shift = ns >> (HISTOGRAM_STEP_BITS + 1) ? 63u - HISTOGRAM_STEP_BITS - (unsigned)__builtin_clzll(ns) : 0;
    histogram->cell[(uint64_t)(shift << HISTOGRAM_STEP_BITS) + (ns >> shift)]++;
    histogram->samples++;
    histogram->over_50us += ns > 50000;
    if (ns > histogram->longest_ns)
        histogram->longest_ns = ns;
}

/* The smallest value that at least `share` (0..1) of the samples do not exceed, to the precision of a cell. */
uint64_t histogram_quantile(const struct histogram *histogram, double share);

/* Adds PREFIXp50_ns, p99_ns, p999_ns, longest_us and over_50us to the result line. */
void histogram_report(const struct histogram *histogram, const char *prefix);

#ifdef __cplusplus
}
#endif
#endif
