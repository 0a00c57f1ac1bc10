/* SPDX-License-Identifier: MIT
 *
 * Blocks above the largest size class.  Up to MAPPING_BYTES_MIN they are spans of the region; from there on they are
 * mappings of their own, which realloc grows by moving page tables instead of bytes.  But a program that takes and
 * frees such blocks over and over pays for every page each time if they are mappings; if they are spans it gets the
 * same pages again.  So where freed memory may be kept (ample.h) blocks of up to SPAN_BYTES_MAX are spans, too, until
 * they grow.
 *
 * A few freed mappings are kept for reuse, at most MAPPING_CACHE_BYTES of them, or what is ample; more, up to
 * MAPPING_DEFERRED_BYTES, wait for a manager to unmap them, if there is one.  All functions may be called from any
 * thread, with no lock held.
 */
#ifndef SUTLER_HEAP_LARGE_H
#define SUTLER_HEAP_LARGE_H

#include "base/compiler.h"

#define MAPPING_BYTES_MIN ((size_t)16 << 20)
#define GROWN_BYTES_MIN ((size_t)1 << 20)
#define SPAN_BYTES_MAX ((size_t)64 << 20)
#define MAPPING_CACHE_BYTES ((size_t)64 << 20)
#define MAPPING_AMPLE_BYTES ((size_t)768 << 20)
#define MAPPING_DEFERRED_BYTES ((size_t)1 << 30)

/* A block of at least `size` bytes at a multiple of `alignment` (a power of two); NULL without memory.  *zero tells
 * whether it reads as zeros. */
void *large_take(size_t size, size_t alignment, bool *zero);
/* The same before memory is refused: a span or a mapping, whichever can be had. */
void *large_squeeze(size_t size, size_t alignment, bool *zero);

/* A mapping of at least GROWN_BYTES_MIN, for a block that may grow again; it may hold anything.  NULL without
 * memory. */
void *large_take_mapping(size_t size);
/* One of which the pages are those of the span at `p`, which is gone then.  NULL if they are better copied: they cannot
 * be moved, or there is a kept mapping. */
void *large_move_out(void *p, size_t size);

/* The short ways take no lock: a signal handler may use them wherever it came in, and a child once it has recovered.
 * The caller sees to it that a child that a handler makes in between does not recover before they are through.
 * large_take_kept returns a kept block of that length, which may hold anything, or NULL. large_span_keep frees `p`, the
 * first byte of a slice_large when it was looked up, by keeping it; false if it cannot. */
void *large_take_kept(size_t size, size_t alignment);
bool large_span_keep(void *p);

/* True if so many bytes may lie in a row in the region.  The region is not opened for what is to be a mapping of its
 * own. */
bool large_may_lie_free(size_t size);

/* Usable bytes of a block, or 0 if `p` is not the start of one: `p` lies outside all spans and superblocks.  A
 * caller that may not wait for the lock can get BYTES_UNKNOWN. */
#define BYTES_UNKNOWN SIZE_MAX
size_t mapping_bytes(const void *p, bool may_wait);

/* Whether a mapping that is long enough for `size`, which is asked for now, is to stay as it is (grown.h).  May wait
 * for the lock. */
bool mapping_stays(const void *p, size_t size);

/* Frees the mapping that starts at `p`; false if there is none. */
bool mapping_give(void *p);

/* The same for spans: `p` was the first byte of a slice_large when looked up. */
size_t large_span_bytes(const void *p);
bool large_span_give(void *p);

/* Frees a block of either kind later, from a signal handler that interrupted a slow path: at the next large_take or
 * purge. */
void large_give_later(void *p);
/* Frees what large_give_later left.  No lock held. */
void large_give_deferred(void);

/* Resizes without copying: in place, or for mappings wherever the system puts it.  NULL if that cannot be done (the
 * block is as it was).  `squeezes`: before memory is refused. */
void *large_resize(void *p, size_t size, bool squeezes);

/* Unmaps deferred mappings, `most` bytes of them or a little more; returns how many.  In a pass, which yields now and
 * then. */
size_t mapping_unmap_deferred(size_t most);

/* Unmaps cached mappings, returns their bytes: those cached since before the last call; *changed is set if there are
 * others.  In a pass. */
size_t mapping_purge(bool *changed);
/* Its first half: defers those, unmaps none. */
void mapping_age(bool *changed);
/* The same two for all but `keep` bytes of them. */
void mapping_defer(size_t keep);
size_t mapping_trim(size_t keep);

struct large_counts {
    size_t blocks, bytes;                 /* all large blocks */
    size_t mapping_blocks, mapping_bytes; /* of those, mappings of their own */
    size_t cached_bytes;                  /* freed mappings kept */
};
/* Looks at every span. */
struct large_counts large_counts(void);
/* What superblocks, large blocks and mappings take. */
size_t heap_in_use_bytes(void);
/* What is free and kept: spans that hold pages, and mappings. */
size_t heap_kept_bytes(void);

#endif
