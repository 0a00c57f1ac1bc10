/* SPDX-License-Identifier: MIT
 *
 * Why: see histogram.h.
 */
#include "histogram.h"

#include "result.h"

#include <stdio.h>

uint64_t histogram_quantile(const struct histogram *histogram, double share)
{
    uint64_t wanted = (uint64_t)(share * (double)histogram->samples);
    uint64_t seen = 0;
    for (uint64_t i = 0; i < HISTOGRAM_CELLS; i++) {
        seen += histogram->cell[i];
        if (histogram->cell[i] && seen >= wanted) {
            if (i >> HISTOGRAM_STEP_BITS <= 1)
                return i;
            unsigned shift = (unsigned)(i >> HISTOGRAM_STEP_BITS) - 1;
            uint64_t upper = (((i - ((uint64_t)shift << HISTOGRAM_STEP_BITS)) + 1) << shift) - 1;
            return upper < histogram->longest_ns ? upper : histogram->longest_ns;
        }
    }
    return histogram->longest_ns;
}

void histogram_report(const struct histogram *histogram, const char *prefix)
{
    static const struct {
        const char *name;
        double share;
    } quantiles[] = {{"p50_ns", 0.5}, {"p99_ns", 0.99}, {"p999_ns", 0.999}};
    char key[64];
    for (unsigned i = 0; i < sizeof(quantiles) / sizeof(quantiles[0]); i++) {
        snprintf(key, sizeof(key), "%s%s", prefix, quantiles[i].name);
        result_count(key, histogram_quantile(histogram, quantiles[i].share));
    }
    snprintf(key, sizeof(key), "%slongest_us", prefix);
    result_real(key, (double)histogram->longest_ns / 1000.0);
    snprintf(key, sizeof(key), "%sover_50us", prefix);
    result_count(key, histogram->over_50us);
}
