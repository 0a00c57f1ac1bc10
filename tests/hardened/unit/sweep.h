/* SPDX-License-Identifier: MIT
 *
 * What the parts of the test of the second tier share: a block that is freed while a pointer to it lies somewhere, and
 * the question whether it comes again.  In memory of the test itself the address is kept as its complement.
 */
#ifndef TESTS_HARDENED_UNIT_SWEEP_H
#define TESTS_HARDENED_UNIT_SWEEP_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "support/check.h"
#include "sutler/sutler.h"

/* Both end the program, the second unless `seen`. */
_Noreturn void fail(const char *what);
void expect(bool seen, const char *what);

/* ---- the library: sweep_block.c ---- */

extern size_t (*purge)(void);

void find_library(void); /* before all else */
struct sutler_stats stats(void);

/* ---- whether the block comes again: sweep_block.c ---- */

extern size_t size;
extern uintptr_t hidden; /* the complement of the freed block's address */

void take_block(void);
void free_block(void);

/* What calls have left on the stack. */
void wash_stack(void);

/* Sweeps, and takes what there is.  Where a large block comes to lie again cannot be told, but while it is kept its
 * pages are guarded. */
bool is_handed_out(void);

/* In the caller's frame, so that there is none above what is washed. */
static inline __attribute__((always_inline)) void expect_kept(void)
{
    wash_stack();
    expect(!is_handed_out(), "a block was handed out to which there is a pointer");
    expect(!is_handed_out(), "a block was handed out to which there is a pointer, the second time");
}

static inline __attribute__((always_inline)) void expect_free(void)
{
    wash_stack();
    expect(is_handed_out(), "a block to which there is no pointer did not come again");
}

/* Stores a pointer `offset` bytes into the block at `place`. */
void put(void *volatile *place, size_t offset);

/* Freed with a pointer `offset` bytes into the block at `place`, which is cleared then. */
void keep_in(void *volatile *place, size_t offset);

/* ---- of the places, what others use: sweep_places.c ---- */

extern void *volatile zeroed_global;

int end_of(void (*deed)(void)); /* of a child that does it: as waitpid tells */

/* ---- of the threads, what others use: sweep_threads.c ---- */

extern atomic_int ready, leave; /* a thread says that it is there, and is told to end */

void await(atomic_int *flag);
void *on_its_stack(void *unused); /* a thread that has the pointer there until it ends */

/* ---- the cases ---- */

/* sweep_places.c */
void nowhere(void);
void global(void);
void interior(void);
void stack(void);
void heap(void);
void own_thread_local(void);
void mapping(void);
void hugetlb(void);
void file_mapping(void);
void shared_mapping(void);
void protected_mapping(void);
void cycle(void);
void large(void);
void in_child(void);
void written(void);

/* sweep_threads.c */
void leader_gone(void);
void threads(void);
void registers(void);

/* sweep_memory.c */
void spread(void);
void outside(void);
void survivors(void);

/* sweep_limits.c */
void bounded(void);
void bounded_large(void);
void limited_large(void);
void crowd(void);
void handler(void);
void filtered(void);
void filtered_before(void);
void unstoppable(void);
void fork_unstoppable(void);

#endif
