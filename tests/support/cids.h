/* SPDX-License-Identifier: MIT
 *
 * Many cpus on a few: programs under libsutler_cids.so, whose cids are what the program says (cids_library.c).
 *
 * A thread binds itself before it allocates or frees anything; then at most one thread at a time may be bound to a cid.
 * One thread can play many one after the other.
 */
#ifndef TESTS_SUPPORT_CIDS_H
#define TESTS_SUPPORT_CIDS_H

#include <stdint.h>

/* src/base/tally.h */
struct tally {
    uint64_t fences, locks, looks, reads, flushed;
};

/* Weak: NULL where another library is preloaded. */
__attribute__((weak)) void sutler_test_bind_cid(unsigned cid);    /* now the thread of this cid */
__attribute__((weak)) void sutler_test_move_to_cid(unsigned cid); /* the same thread, moved */
__attribute__((weak)) struct tally sutler_test_tally(void);

#endif
