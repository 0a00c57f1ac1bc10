/* SPDX-License-Identifier: MIT
 *
 * Spans of large blocks that were freed last, kept as they are for the next block of the same length: a program that
 * takes a buffer, works in it and frees it, over and over, comes to no lock that its other threads take.
 *
 * Each cid has SPAN_CACHE_SLOTS slots, a word each: 8 for spans of up to 256 KiB, 4 for those of up to 512 KiB, 2 of up
 * to 1 MiB and one of up to 2 MiB, so 2 MiB of each at most.  (Cids far apart may share them.)  A span is taken by
 * exchanging its word for zero, so nobody needs to own the slots, and a thread that is moved meanwhile does no harm.  A
 * kept span's first slice is slice_kept; to the spans' own count it is still in use.
 *
 * When a block of another length is wanted, all that the cid keeps goes back to the free spans first: there it merges
 * with what lies beside it, and may be long enough.  A program whose buffers have many lengths would spread them else,
 * over memory that was never used (docs/decisions/0035-kept-until-another-length-is-wanted.md).  What is not taken
 * again between two purge passes goes back as well; so does everything when malloc_trim is called, before memory is
 * refused, and when memory is short.
 */
#ifndef SUTLER_HEAP_SPAN_CACHE_H
#define SUTLER_HEAP_SPAN_CACHE_H

#include <stdint.h>

#include "base/compiler.h"
#include "heap/layout.h"

#define SPAN_CACHE_SLOTS 15u
#define SPAN_CACHE_SLICES_MAX ((2ul << 20) >> SLICE_SHIFT)

/* A span of just so many slices; it is slice_kept, and the caller's.  SLICE_NONE if there is none. */
uint32_t span_cache_take(size_t slices);
/* Keeps a span, which is slice_kept, in an empty slot; if there is none and it `replaces`, in place of another span,
 * which is given back (no lock held).  False if there is no slot for it, or memory is short: then the span is still the
 * caller's. */
bool span_cache_put(uint32_t first, size_t slices, bool replaces);

/* Frees all spans of the running cid. */
void span_cache_give_back(void);
/* Frees all spans, or those kept since before the last call; *changed is set if there are others. */
void span_cache_purge(bool all, bool *changed);

size_t span_cache_bytes(void);

/* In a child: nothing is kept.  span_recover finds the spans. */
void span_cache_forget(void);

#endif
