/* SPDX-License-Identifier: MIT
 *
 * Spans: runs of slices of the region, for superblocks and large blocks.  Every slice remembers whether it may hold
 * something other than zeros (enum content), so memory fresh from the system is not cleared twice.
 *
 * Free spans are kept in arenas (arena.h); some of them are prefaulted (prefault_pool.h).
 *
 * Dirty free spans were live lately and may be again, so they are kept until a pass has seen them free twice.  How much
 * is kept is bounded by what the manager has found ample (ample.h); without that, by SPAN_DIRTY_FLOOR, a quarter of
 * what is open or, without a manager's clock, half of what is in use, whichever is most.  A large block freed beyond
 * the bound is purged at once by the thread that frees it.  (Superblocks of small blocks are not: to purge
 * less than a huge page splits it and frees nothing.)
 */
#ifndef SUTLER_HEAP_SPAN_H
#define SUTLER_HEAP_SPAN_H

#include "heap/pass.h"
#include "heap/superblock.h"
#include "os/lock.h"

/* What a span is for; the two are kept in separate arenas of the region. */
enum span_use { span_dense, span_large };

/* Takes `slices` slices, the first at a multiple of `align_slices` (a power of two); *first is its number.  False
 * without memory.  Their descriptors are slice_unknown. */
bool span_take(enum span_use use, size_t slices, size_t align_slices, uint32_t *first);

/* The same for a large block, near the last one that the running cid gave back (span_near.h). */
bool span_take_block(size_t slices, size_t align_slices, uint32_t *first);

/* The same for a superblock, but only from a free span that has pages, of whichever arena. */
bool span_take_used(enum span_use use, size_t slices, uint32_t *first);

/* True if a large block of so many slices would be taken from a free span that has pages. */
bool span_is_there(size_t slices);

/* The same before memory is refused: from any free slices in a row, of either arena, or still to be opened. */
bool span_squeeze(size_t slices, size_t align_slices, uint32_t *first);

/* Gives slices back; they may hold anything.  `block`: a large block's, where the running cid's next one is to lie.
 * `aged`: they have not been used since the last purge pass. */
void span_give(uint32_t first, size_t slices);
void span_give_block(uint32_t first, size_t slices);
void span_give_aged(uint32_t first, size_t slices);
/* The same of slices that have no pages any more. */
void span_give_empty(uint32_t first, size_t slices);
/* Purges the slices and gives them back, if they are many and more would be free than may be kept.  False if they are
 * still the caller's.  Takes a millisecond: by free and realloc, with no lock held. */
bool span_give_if_crowded(uint32_t first, size_t slices);
/* So, or else as span_give. */
void span_give_freed(uint32_t first, size_t slices);

/* Waits until other threads have put back the free spans that they hold for a moment. */
void span_await_away(void);

/* Lengthens the span that ends before slice `end` by `more` slices if they are free and directly there. */
bool span_extend(uint32_t end, size_t more);
/* The same before memory is refused: opens more, if need be. */
bool span_extend_squeezed(uint32_t end, size_t more);

/* How many slices the superblock or large block that begins here has, as far as can be told while it may be changing; 1
 * for anything else.  For walks. */
size_t span_passed(uint32_t slice);

/* Slices up to the last that may hold something: those behind it read as zero. */
size_t span_used_slices(uint32_t first, size_t slices);
/* True if all slices read as zero. */
bool span_is_zero(uint32_t first, size_t slices);

/* Purges dirty free spans, returns the bytes: all but `keep_bytes` of them, or those that have been free
 * since the last call (*changed is set if there is something for the next).  In a pass, with no lock held. */
size_t span_purge(enum purge_what what, size_t keep_bytes, bool *changed);

struct span_counts {
    size_t opened_bytes, in_use_bytes, dirty_bytes, purged_bytes;
};
/* What span_cache.c keeps counts as dirty. */
struct span_counts span_counts(void);
/* These alone; what span_cache.c keeps counts as in use. */
size_t span_in_use_bytes(void);
size_t span_dirty_bytes(void);

extern struct lock span_lock; /* for fork */
/* In a child: frees the slices that threads which are not there had in their hands.  `anew`: the lock was held when the
 * child was made, so the bins are rebuilt. */
void span_recover(bool anew);

/* Adds to the purged statistics; purges of superblocks count too.  No lock needed. */
void span_note_purged(size_t bytes);

#endif
