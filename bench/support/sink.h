/* SPDX-License-Identifier: MIT
 *
 * Why: a compiler may remove a malloc whose block is never looked at, and a benchmark would then time nothing.  The
 * programs are compiled with -fno-builtin for the allocator's functions; sink() is the second belt: the pointer escapes
 * into an empty asm statement that might read or write all memory, at the cost of no instruction.
 */
#ifndef BENCH_SINK_H
#define BENCH_SINK_H

#define sink(value) __asm__ volatile("" : : "r"(value) : "memory")

#endif
