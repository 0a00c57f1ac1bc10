/* SPDX-License-Identifier: MIT
 *
 * Why: some questions can only be asked of a process that has a heap: what does it cost to fork it, does a library's
 * background thread (which may start only after growth) slow down stdio or shared_ptr.  This fills one: a chain of
 * touched blocks of 64 to 1,024 bytes, each marked so that damage shows.
 */
#ifndef BENCH_HEAP_H
#define BENCH_HEAP_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct heap_block;

/* Allocates about `mib` MiB (0: nothing) and returns the chain. */
struct heap_block *heap_fill(uint64_t mib, uint64_t seed);

/* Number of damaged blocks in the chain. */
uint64_t heap_check(const struct heap_block *chain);

/* Frees all of it; returns what heap_check would have. */
uint64_t heap_free(struct heap_block *chain);

#ifdef __cplusplus
}
#endif
#endif
