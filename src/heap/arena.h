/* SPDX-License-Identifier: MIT
 *
 * Arenas: the region has two parts, for two uses (enum span_use).  Of each: the free spans, in bins by length, and what
 * was opened but never used.  Neighbouring free spans are merged; boundary tags in the descriptors of a span's first
 * and last slice find them.
 *
 * Inside of span*.c and prefault_pool.c; everything here is called with span_lock held.
 */
#ifndef SUTLER_HEAP_ARENA_H
#define SUTLER_HEAP_ARENA_H

#include "heap/span.h"

/* Bins: lengths 1 to 32 exactly, then four per doubling. */
#define BIN_EXACT 32u
#define BIN_COUNT (BIN_EXACT + 4 * 24)

struct arena {
    uint32_t bin_head[BIN_COUNT]; /* slice number + 1; 0: empty, which makes zeroed memory a valid start */
    uint64_t bin_used[(BIN_COUNT + 63) / 64];
    uint32_t fresh_first, fresh_end; /* opened, never used */
};

/* By enum span_use.  Superblocks fill the dense arena, so huge pages are asked for there; a large block may be touched
 * anywhere, or hardly at all, or be filled (huge_policy.h). */
extern struct arena arena[2];

struct arena *arena_of(uint32_t slice);

/* The bin that holds spans of this length. */
unsigned bin_of(size_t slices);
/* Lowest bin from `bin` on with a span in it, or BIN_COUNT. */
unsigned bin_next(const struct arena *a, unsigned bin);

/* How often there was a free span more, or a longer one. */
extern uint64_t arena_insertions;

/* Puts a free span of this length into its bin, or takes it out. */
void arena_insert(uint32_t first, size_t slices);
void arena_remove(uint32_t first);

/* Takes `slices` from `at` on out of the free span that begins at `span`: it is two then, or one, or none. */
void arena_cut(uint32_t span, uint32_t at, size_t slices);

/* Inserts free slices, merged with free neighbours; returns the first slice of the whole. */
uint32_t arena_insert_merged(uint32_t first, size_t slices);

/* A free span of at least `slices`, or SLICE_NONE. */
uint32_t arena_find(const struct arena *a, size_t slices);
/* The same, but one that begins with used pages if a look at the first of each bin finds one. */
uint32_t arena_find_used(const struct arena *a, size_t slices);
bool arena_is_used(uint32_t first); /* whether this one, if it is not SLICE_NONE, does */

/* The first slice from `first` on at a multiple of so many slices; and the shortest free span with `slices` from such a
 * one on, of the first `most` of each bin, or SLICE_NONE. */
uint32_t arena_aligned_from(uint32_t first, size_t align_slices);
uint32_t arena_find_aligned(const struct arena *a, size_t slices, size_t align_slices, size_t most);

/* The first slice of the free span of this arena that begins or ends with `slice`, which may lie outside of the region;
 * or SLICE_NONE. */
uint32_t arena_free_neighbour(uint32_t slice, const struct arena *a);

/* The free span that ends where what was never used begins, or SLICE_NONE. */
uint32_t arena_last(const struct arena *a);

/* Opens more of the region, at least until the fresh end holds `slices`.  False without memory. */
bool arena_open(struct arena *a, size_t slices);

/* How many of the slices hold this. */
size_t slices_holding(uint32_t first, size_t slices, enum content content);

/* How many free spans are out of the bins for a moment, to be purged or prefaulted; not those of a pass over all spans,
 * for who waits for them begins a pass first. */
extern _Atomic unsigned spans_away;

extern struct span_counts span_count;
/* These slices are no longer free.  Returns the bytes of those that have no used pages. */
size_t span_count_taken(uint32_t first, size_t slices);

/* What the system gets back with the pages of some slices: used ones, and those that were prefaulted and not taken. */
struct span_returned {
    size_t dirty_bytes, prefaulted_bytes;
};
/* span_forget_pages marks the slices as without pages and adds what that returns to *sum; it is called by whoever has
 * them.  span_count_returned counts the sum, with span_lock held. */
void span_forget_pages(uint32_t first, size_t slices, struct span_returned *sum);
void span_count_returned(struct span_returned r);

#endif
