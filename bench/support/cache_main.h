/* SPDX-License-Identifier: MIT
 *
 * Why: an allocator that puts blocks of two threads into one cache line makes them slow each other down although they
 * share nothing.  Hoard's two tests of it differ in one point, and so do the programs built on this:
 *   active  (cache_thrash):  the allocator itself gives blocks of one line to different threads;
 *   passive (cache_scratch): the program once passed neighbouring blocks to different threads; each frees its own and
 *                            allocates again - does the allocator hand the shared line out again?
 */
#ifndef BENCH_CACHE_MAIN_H
#define BENCH_CACHE_MAIN_H

#include <stdbool.h>

int cache_main(const char *name, bool passive, int argc, char **argv);

#endif
