/* SPDX-License-Identifier: MIT
 *
 * Why: LFMalloc's Table 2 counts what interferes with restartable sections: migrations, preemptions, and sections that
 * were restarted; the 2013 report looks at locks found held when others' blocks are freed (its figure 6).  The first
 * two are the kernel's, per thread, in /proc/thread-self/sched; the others the library's own statistics, where the
 * library is loaded that keeps them.  A figure that cannot be had is not printed.
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
