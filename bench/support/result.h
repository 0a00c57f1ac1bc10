/* SPDX-License-Identifier: MIT
 *
 * Why: one line a run, readable by people and by a split on blanks and `=`:
 *
 *     name=pair threads=1 ops=30000000 seconds=0.071 ns_per_op=2.4 ... cpu_seconds=0.07 faults=120 peak_rss_kib=1900
 *
 * `ns_per_op` is wall time over all operations of all threads (the inverse of throughput).  A run whose own checks
 * failed prints no line: it must never be taken for a fast one.  The line is built in place and written by one system
 * call, so that reporting never disturbs the allocator that is being reported on.
 */
#ifndef BENCH_RESULT_H
#define BENCH_RESULT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

void result_begin(const char *name, uint64_t threads, uint64_t ops, uint64_t ns);
void result_count(const char *key, uint64_t value);
void result_real(const char *key, double value);
void result_text(const char *key, const char *value);

/* Appends the process's cpu time, page faults and peak memory, prints the line and returns main's exit status: 0, or
 * 1 with a message on stderr (and no line) if `errors` is not zero. */
int result_end(uint64_t errors);

#ifdef __cplusplus
}
#endif
#endif
