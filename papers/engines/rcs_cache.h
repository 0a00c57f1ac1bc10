/* SPDX-License-Identifier: MIT
 *
 * Why: what the sections of rcs_cache (assembly) and its slow paths (C) share.
 *
 * A cache is what `struct heap` is in the library: heap_of_cid says which one a section works on (src/rcs/rcs.h).  A
 * list is one word, the top block's address << 16 | how many there are, and the first word of a block is the list below
 * it; so a pop is a load and a store.
 */
#ifndef ENGINES_RCS_CACHE_H
#define ENGINES_RCS_CACHE_H

#define RCS_CACHE_COUNT_BITS 16

#ifndef __ASSEMBLER__
#include "base.h"

#define RCS_CACHE_CLASSES 84u /* 64 of 16 bytes each up to 1 KiB, then 4 each time the size doubles */

struct cache {
    _Alignas(64) uint64_t lists[RCS_CACHE_CLASSES];
};

extern uint16_t rcs_cache_limits[RCS_CACHE_CLASSES]; /* blocks of a class in one cache */

/* In one section: the top block of the running cid's list.  If there is none, or the section was interrupted, what
 * rcs_cache_allocate_slow() returns. */
void *rcs_cache_pop(uint32_t class);
void *rcs_cache_allocate_slow(uint32_t class); /* NULL: out of memory */

/* In one section: the block onto the running cid's list.  If that is full, or the section was interrupted, the block is
 * rcs_cache_release_slow()'s. */
void rcs_cache_push(uint32_t class, void *block);
void rcs_cache_release_slow(uint32_t class, void *block);
#endif

#endif
