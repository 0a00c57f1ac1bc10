/* SPDX-License-Identifier: MIT
 *
 * The heap's invariants, checked from outside.  What heap.h promises in prose is asked of every superblock of the
 * region by a walk of its own, which shares no code with the walks of the library.  Quiescent only: no thread may be
 * inside the allocator.
 */
#ifndef TESTS_UNIT_INSPECT_H
#define TESTS_UNIT_INSPECT_H

#include "heap/heap.h"

struct class_state {
    size_t superblocks, carved, local; /* blocks that exist; of those, on local lists */
    size_t remote;                     /* on remote lists, and in outboxes */
    size_t live;                       /* the rest: in the program's hands */
};

/* Bytes of one uncarved unit, of a superblock of so many slices. */
size_t unit_bytes_for(unsigned slices);
size_t unit_bytes_of(const struct superblock *s);

/* The units that block `i` touches. */
unit_set units_touched(const struct superblock *s, unsigned i);

/* The fullness group of a superblock of which `available` of `blocks` are free or uncarved. */
enum group group_expected(unsigned blocks, unsigned available);

/* One superblock: its lists are sound and disjoint, carved says how many blocks have all their units. */
void expect_superblock_sound(const struct superblock *s);

/* All superblocks of class `c`; each must be sound. */
struct class_state class_inspect(unsigned c);

/* Every superblock is owned, and in exactly one place: active, on its owner's list of the group it is in, or waiting in
 * a pending stack.  The lists' neighbours and counters are right, and no transition was lost: whatever is on a list has
 * not passed its threshold and is armed for remote frees. */
void expect_heaps_sound(void);

/* ---- what slow paths do in passing ---- */

/* Whether decay_in_passing purges.  False at first: it would where filling takes long, and a test that counts, or makes
 * rounds by hand, would miss what went. */
extern bool test_slow_paths_decay;

/* ---- who has a block ---- */

/* Sets up a flag for each block of the first `region_bytes` of region, and for what signal handlers are given. */
void flags_map(size_t region_bytes);
/* Of the block at this address.  Set by the tests, which exchange it, while the block is in somebody's hands. */
_Atomic unsigned char *flag_of(const void *block);

/* ---- heaps of a test's own ---- */

/* A local heap that no slot belongs to; `listed` puts it where heap_take_from_resting and heap_purge_all find it. */
struct heap *test_heap_new(bool listed);

/* Makes `h` the heap of every slot, so that the caller's sections run on it; NULL gives every slot its own again.  Only
 * with one thread. */
void test_heap_bind(struct heap *h);

/* A fresh detached superblock of class `c`, as long as its class says; or of `slices` slices. */
struct superblock *test_superblock_new(unsigned c);
struct superblock *test_superblock_of(unsigned c, unsigned slices);

/* Exclusive superblocks: carves everything, takes a block (NULL if the list is empty), gives one back. */
void test_carve_all(struct superblock *s);
void *test_take(struct superblock *s);
void test_give(struct superblock *s, void *block);

/* Gives a detached superblock's memory back. */
void test_superblock_drop(struct superblock *s);

#endif
