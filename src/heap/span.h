/* SPDX-License-Identifier: MIT
 *
 * Spans: runs of slices of the region, for superblocks and large blocks.  Every slice remembers whether it may hold
 * something else than zeros (enum content), so memory fresh from the system is not cleared twice.
 *
 * Free spans are kept in arenas (arena.h); what is prefaulted is the prefault pool (prefault_pool.h).
 *
 * Dirty free spans are what was live lately, and may be so again: they are kept, and a pass purges what it has
 * seen free before.  How much is kept until then is bounded by what the manager has found ample (ample.h); else by
 * SPAN_DIRTY_FLOOR, a quarter of what is open or, where no manager has a clock, half of what is in use, whichever is
 * more.  Only a large block freed beyond that goes back at once, by the thread that frees it (superblocks of small blocks
 * do not: purging less than a huge page splits it and frees nothing; they wait for a purge).
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

/* The same where span_take found none and memory would be refused: from whatever is free, or can be, in a row. */
bool span_squeeze(size_t slices, size_t align_slices, uint32_t *first);

/* Gives slices back; they may hold anything.  `aged`: they have not been used since the last purge pass. */
void span_give(uint32_t first, size_t slices);
void span_give_aged(uint32_t first, size_t slices);

/* Waits for free spans other threads have in their hands; in a child, those threads are not there. */
void span_await_away(void);
void span_forget_away(void);

/* Lengthens the span that ends before slice `end` by `more` slices if they are free and directly there. */
bool span_extend(uint32_t end, size_t more);
/* The same where the block could not be had elsewhere: opens more, if need be. */
bool span_extend_squeezed(uint32_t end, size_t more);

/* How many slices the superblock or large block that begins here takes, as far as can be told while it may be changing;
 * 1 for anything else. */
size_t span_passed(uint32_t slice);

/* True if all slices read as zero. */
bool span_is_zero(uint32_t first, size_t slices);

/* Purges dirty free spans, returns the bytes: all but `keep_bytes` of them, or those that have been free
 * since the last call (*changed is set if there is something for the next).  In a pass, with no lock held. */
size_t span_purge(enum purge_what what, size_t keep_bytes, bool *changed);

struct span_counts {
    size_t opened_bytes, in_use_bytes, dirty_bytes, purged_bytes;
};
/* With what is kept in span_cache.c counted as free. */
struct span_counts span_counts(void);
/* in_use_bytes alone, with what is kept there; and dirty_bytes without. */
size_t span_in_use_bytes(void);
size_t span_dirty_bytes(void);

extern struct lock span_lock; /* for fork */
/* In a child: slices that belong to nothing, which vanished threads had in their hands, are free.  `anew`: the lock was
 * held when the child was made, and all free spans are found again. */
void span_recover(bool anew);

/* Adds to the purged statistics; purges of superblocks count too. */
void span_note_purged(size_t bytes);
size_t span_purged_bytes(void);

/* The pages of these free slices are the system's again.  span_lock is held. */
void span_note_returned(uint32_t first, size_t slices);

#endif
