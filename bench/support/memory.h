/* SPDX-License-Identifier: MIT
 *
 * Why: what an allocator keeps is half of what it is judged by, and the reading must not itself allocate: /proc files
 * are read into a stack buffer with plain system calls.
 *
 * Resident memory comes from smaps_rollup, which counts pages (the counters behind /proc/self/status may lag by some
 * hundred KiB per cpu on recent kernels).  It can lie the other way: pages given back out of the middle of a huge page
 * leave the resident figure but not the machine's use of memory; programs that judge memory returned therefore report
 * the system's free memory as well.
 */
#ifndef BENCH_MEMORY_H
#define BENCH_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

uint64_t memory_rss_kib(void);         /* resident now */
uint64_t memory_anonymous_kib(void);   /* of that, what is no file's page: heaps, stacks */
uint64_t memory_peak_kib(void);        /* most ever resident */
uint64_t memory_address_kib(void);     /* address space, what RLIMIT_AS counts */
uint64_t memory_system_free_kib(void); /* MemFree of the whole machine */

/* Zeroed pages straight from the system, for the harness's own tables: the allocator under test never sees them.
 * Already populated, so that a timed loop over a table takes no page fault.  Exits with a message if there are none. */
void *pages_map(size_t bytes);
void *pages_map_shared(size_t bytes); /* the same, shared with children */
/* Untouched, aligned to huge pages, with one madvise(2) advice about them. */
void *pages_map_untouched(size_t bytes, int advice);
void pages_touch(void *pages, size_t bytes);
void pages_unmap(void *pages, size_t bytes);

#ifdef __cplusplus
}
#endif
#endif
