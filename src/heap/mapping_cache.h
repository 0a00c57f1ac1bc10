/* SPDX-License-Identifier: MIT
 *
 * Freed mappings that may be had again: at most MAPPING_CACHE_BYTES; where memory is ample, as much as is in use, up to
 * MAPPING_AMPLE_BYTES.  And, where there is a manager to unmap them, at most MAPPING_DEFERRED_BYTES that wait for it.
 * A forked child gets none of what is beyond MAPPING_CACHE_BYTES: it would copy the page tables, and hold or unmap it.
 *
 * Where memory is ample (ample.h) a mapping is kept as it is.  Elsewhere the system may take its pages when it wants
 * memory (MADV_FREE, which costs a third of munmap).
 *
 * mapping_lock is held unless it says otherwise.
 */
#ifndef SUTLER_HEAP_MAPPING_CACHE_H
#define SUTLER_HEAP_MAPPING_CACHE_H

#include "heap/mapping_table.h"

/* Takes a mapping, or the beginning of one: no more than a quarter too large; or, if no more than a page's alignment is
 * asked for, too small by half at most, for the caller to lengthen.  Its address is 0 if there is none. */
struct mapping mapping_cache_take(size_t bytes, size_t alignment);
bool mapping_cache_serves(size_t bytes, size_t alignment);
/* Takes the first bytes of the one that begins there; false if there is none so long. */
bool mapping_cache_take_at(uintptr_t address, size_t bytes);
/* Called before mapping_cache_give with no lock held, for it takes long.  False if the mapping cannot be kept.
 * One that is not `wanted` again only waits for the manager. */
bool mapping_cache_prepare(uintptr_t address, size_t bytes, bool wanted);
/* False if it is full: the mapping is the caller's to unmap. */
bool mapping_cache_give(struct mapping m, bool wanted);

size_t mapping_cache_bytes(void);

/* In a child, made in the middle of something or not. */
void mapping_cache_recover(void);

#endif
