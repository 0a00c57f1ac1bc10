/* SPDX-License-Identifier: MIT
 *
 * Why: see sched_counts.h.  Read with plain system calls: stdio would allocate.
 */
#define _GNU_SOURCE
#define SUTLER_WEAK
#include "sched_counts.h"

#include "result.h"
#include "sutler/sutler.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The number after `key` and its colon, or 0. */
static uint64_t field(const char *text, const char *key)
{
    const char *at = strstr(text, key);
    at = at != NULL ? strchr(at, ':') : NULL;
    return at != NULL ? strtoull(at + 1, NULL, 10) : 0;
}

void sched_counts_add_thread(struct sched_counts *counts)
{
    char text[4096];
    int file = open("/proc/thread-self/sched", O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return;
    ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    if (length <= 0)
        return;
    text[length] = '\0';
    if (strstr(text, "nr_migrations") == NULL)
        return;
    __atomic_fetch_add(&counts->migrations, field(text, "se.nr_migrations"), __ATOMIC_RELAXED);
    __atomic_fetch_add(&counts->preemptions, field(text, "nr_involuntary_switches"), __ATOMIC_RELAXED);
    __atomic_fetch_add(&counts->threads, 1, __ATOMIC_RELAXED);
}

void sched_counts_print(const struct sched_counts *counts)
{
    if (counts->threads != 0) {
        result_count("migrations", counts->migrations);
        result_count("preemptions", counts->preemptions);
    }
    struct sutler_stats stats;
    if (sutler_is_active != NULL && sutler_is_active() && sutler_stats_get(&stats, sizeof stats) == 0) {
        result_count("restarts", stats.aborts);
        result_count("lock_waits", stats.lock_waits);
    }
}
