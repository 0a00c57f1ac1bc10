/* SPDX-License-Identifier: MIT
 *
 * What the scenes and the intruders of step.h are made of.  Every block is entered in a side table when it is handed
 * out and struck out when it is given back, by whoever does it; it carries a stamp at both ends; and the allocator is
 * asked about it as any program may (malloc_usable_size), because it must know a block from the moment it hands it out.
 */
#ifndef TESTS_UNIT_STEP_BLOCKS_H
#define TESTS_UNIT_STEP_BLOCKS_H

#include "heap/heap.h"

/* The two sizes all of it is played with. */
#define SMALL    500u   /* 128 blocks a superblock of one slice, eight to a unit */
#define MEDIUM   26000u /* a superblock of many slices: most blocks do not start in the first */
#define POOL_MAX 2048

/* Blocks out, of A and of the intruder. */
struct pool {
    unsigned count;
    struct held {
        char *block;
        size_t size;
    } held[POOL_MAX];
};
extern struct pool pool_a, pool_b;

extern struct heap *home, *elsewhere; /* the heap of both threads; another one */
extern unsigned small, medium;        /* the classes of the two sizes */

/* A block that was had otherwise than by take(); one that will be given back otherwise than by give(). */
void enter(struct pool *pool, void *block, size_t size);
void *strike_out(struct pool *pool, unsigned n);

void take(struct pool *pool, size_t size);
void give(struct pool *pool);
void pass(struct pool *from, struct pool *to, unsigned n);

void purge_all(void);

/* One more on a counter that only sections write; step_verify checks that none was lost. */
void count_once(void);
void count_from_zero(void);

#endif
