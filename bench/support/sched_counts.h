/* SPDX-License-Identifier: MIT
 *
 * Why: LFMalloc's Table 2 counts what interferes with restartable sections: migrations, preemptions, and sections that
 * were restarted.  The first two are the kernel's, per thread, in /proc/thread-self/sched; the third the library's own
 * statistic, where the library is loaded that keeps one.  A figure that cannot be had is not printed.
 */
#ifndef BENCH_SCHED_COUNTS_H
#define BENCH_SCHED_COUNTS_H

#include <stdint.h>

struct sched_counts {
    uint64_t threads, migrations, preemptions;
};

void sched_counts_add_thread(struct sched_counts *counts); /* what the calling thread has seen so far */
void sched_counts_print(const struct sched_counts *counts);

#endif
