/* SPDX-License-Identifier: MIT
 *
 * The region: the range of addresses all superblocks and large blocks live in, cut into slices of 64 KiB, each
 * with a descriptor of two cache lines in an array of its own.  Address to descriptor is a subtraction, a compare and
 * a shift: the region is the page map.
 *
 * Nothing is reserved.  The region starts at a random address in the middle of the address space, where the kernel
 * puts nothing of its own accord, and is opened from the bottom in steps that grow with the heap, each mapped with
 * MAP_FIXED_NOREPLACE; a step that finds somebody else's mapping in its way, or in the way of its descriptors, skips
 * past it.  So address space limits, strict overcommit and mlockall cost what the heap costs.
 * (docs/decisions/0001-one-window.md)
 *
 * Slices once opened are never unmapped and descriptors are type-stable: any address in the region may be looked up
 * at any time, without a lock.
 */
#ifndef SUTLER_HEAP_REGION_H
#define SUTLER_HEAP_REGION_H

#include "base/bits.h"
#include "heap/layout.h"
#include "rcs/hot.h"

#define REGION_SLICES_MAX (1ul << 27) /* 8 TiB */
#define REGION_BELOW_BYTES (4ul << 30)
#define HUGE_PAGE_BYTES (2ul << 20)
#define HUGE_PAGE_SLICES ((uint32_t)(HUGE_PAGE_BYTES >> SLICE_SHIFT))

struct superblock;

/* Chooses the address.  Returns false if there is no address space at all.  Called once. */
bool region_start(void);

/* Opens at least `slices` more slices directly at the top; *first is the first new slice's number, *count how many were
 * opened.  They need not follow the last ones.  Tells the system which of them are to have huge pages: those of the
 * dense arena, once the region has grown; with huge_pages=on, all.  False without memory.  Caller holds the span
 * lock. */
bool region_open(size_t slices, bool is_dense, uint32_t *first, size_t *count);

/* True if the system's huge pages are of 2 MiB.  Where a page is 16 or 64 KiB they are of 32 or 512 MiB, and one touch
 * would bring a hundred times what is in use: those are only asked for with huge_pages=on. */
bool region_fits_huge_pages(void);

/* The first slice that may have huge pages; SLICE_END if none may yet. */
uint32_t region_huge_from(void);

/* The first slice above all that were opened. */
uint32_t region_end(void);

/* REGION_BELOW_BYTES of addresses below the region and its descriptors, for signal_safe.h.  Nothing is mapped there.
 * They have states in the hardened library, as the region has. */
void *region_below(void);

/* Bytes opened so far. */
size_t region_opened_bytes(void);

/* True for addresses that have a descriptor.  Not to be asked before region_start. */
bool region_contains(const void *p);

/* For visits to all slices that have a descriptor: the first one from `slice` on; SLICE_END after the last. */
#define SLICE_END UINT32_MAX
uint32_t region_slice_from(uint32_t slice);

static inline void *slice_address(uint32_t slice)
{
    return (void *)(hot.region_base + ((uintptr_t)slice << SLICE_SHIFT));
}

static inline uint32_t slice_of(const void *p)
{
    return (uint32_t)(((uintptr_t)p - hot.region_base) >> SLICE_SHIFT);
}

static inline size_t slices_for(size_t bytes)
{
    return (bytes + SLICE_BYTES - 1) >> SLICE_SHIFT;
}

#endif
