/* SPDX-License-Identifier: MIT
 *
 * Writing statistics: the table stats.def names every field once, for the readable report and for JSON.
 */
#ifndef SUTLER_STATS_STATS_H
#define SUTLER_STATS_STATS_H

#include "sutler/sutler.h"

/* One extra line of text / JSON members before the table, for facts that are no numbers. */
struct stats_fact {
    const char *name, *value;
};

void stats_write(int fd, bool json, const struct sutler_stats *stats, const struct stats_fact *facts,
                 size_t fact_count);

#endif
