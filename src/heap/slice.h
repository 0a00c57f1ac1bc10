/* SPDX-License-Identifier: MIT
 *
 * Slices: what the descriptor of every slice says, whatever the slice is used for.  Slices that belong together (a
 * superblock, a large block, a free span) are described by the first of them, which says how many they are; the others say
 * at most which one is the first.  What a superblock is beyond that follows in the same descriptor (superblock.h).
 *
 * Descriptors lie in an array, 1 << DESCRIPTOR_SHIFT bytes each; they are never unmapped, and may be read at any time
 * without a lock.  A reader that holds nothing loads `kind` first.
 *
 * Who may write what.  A slice belongs to the span lock while it is in a bin, and else to whoever took it out: the heap that
 * owns the superblock, the holder of the large block, a pass.
 *   kind         whoever the slice belongs to, the rest of the descriptor being written before.  slice_large to slice_kept
 *                and back by compare-and-swap, or by who emptied the slot
 *   next, prev   the lock of the list they are in
 *   first        whoever makes the slice a tail or the end of a free span
 *   slices       whoever makes the run
 *   flags        whoever the slice belongs to; of a superblock that is not exclusive, the holder of its heap's lock
 *   huge         a pass; or whoever holds all of the huge page
 */
#ifndef SUTLER_HEAP_SLICE_H
#define SUTLER_HEAP_SLICE_H

#include "heap/layout.h"
#include "heap/window.h"

/* What a slice is.  Between any two others it is unknown for a moment, in the hands of one thread:
 *
 *                   arena_insert                span_take, superblock_format
 *    free, free_end <----------> unknown ------------------------------------> superblock, tail --> quarantine
 *                   arena_remove  ^ | | <-------------- span_give ------------'
 *                                 | | '--> emergency
 *                       span_give | v                free_once
 *                                 | large <----------------------------> kept
 *                                 '------------------------------------- '   large_take_kept
 */
enum slice_kind {
    slice_unknown,    /* never used, or inside a free or large span */
    slice_superblock, /* first slice of a superblock */
    slice_tail,       /* a later slice of a superblock */
    slice_large,      /* first slice of a large block */
    slice_kept,       /* the same, freed and kept for the next one (span_cache.h) */
    slice_free,       /* first slice of a free span */
    slice_free_end,   /* last slice of a free span of more than one */
    slice_quarantine, /* first slice of a superblock found damaged: its memory is never used again */
    slice_emergency,  /* blocks for signal handlers that interrupted the allocator */
};

#define SLICE_NONE UINT32_MAX

#define FLAG_DIRTY 1u  /* the slice may hold something else than zeros */
#define FLAG_AGED 2u   /* a free slice that holds pages: the last purge pass has seen it free */
#define FLAG_LARGE 4u  /* the slice is of the stretches for large blocks */
#define FLAG_WARM 8u   /* a free slice of the reserve: its pages are there, and zero */
/* The first slice of a large block or superblock that was taken, all of it, from slices not dirty.  Blocks of such a
 * superblock that were never carved are zero but for their first word. */
#define FLAG_FRESH 16u
/* The first slice of a superblock that was taken from dirty slices: what of it is uncarved may hold pages all the same
 * (stale.h).  Then FLAG_AGED: it was so at the last purge. */
#define FLAG_STALE 32u
/* The first slice of a superblock in a huge page that was broken to give back what is uncarved of it: these are holes,
 * a page fault for each of their pages, and malloc takes fresh memory before it fills them (decision 12). */
#define FLAG_HOLES 64u
/* The first slice of a superblock that lent some of the others (lend.h). */
#define FLAG_LENT 128u

/* In `huge` of the slice where a huge page begins. */
#define HUGE_ASKED 1u /* one was asked for here */
#define HUGE_SPLIT 2u /* it was split (huge.h) */

struct slice {
    union {
        uint32_t next;  /* list neighbours, by slice number: superblocks of a heap, free spans of a bin */
        uint32_t first; /* slice_tail, slice_free_end: the first slice of the run it is in */
    };
    uint32_t prev;
    uint32_t slices; /* length of the run, in its first slice */
    uint8_t kind;
    uint8_t flags;
    uint8_t huge;
    uint8_t unused;
};

_Static_assert(offsetof(struct slice, first) == SLICE_FIRST, "shared with assembly");
_Static_assert(offsetof(struct slice, kind) == SLICE_KIND, "shared with assembly");
_Static_assert(slice_superblock == SLICE_SUPERBLOCK && slice_tail == SLICE_TAIL, "shared with assembly");

static inline struct slice *slice_at(uint32_t number)
{
    return (struct slice *)(hot.descriptors + ((size_t)number << DESCRIPTOR_SHIFT));
}

static inline uint32_t slice_number(const struct slice *s)
{
    return (uint32_t)(((const char *)s - hot.descriptors) >> DESCRIPTOR_SHIFT);
}

static inline enum slice_kind slice_kind(const struct slice *s)
{
    return __atomic_load_n(&s->kind, __ATOMIC_ACQUIRE);
}

/* Whatever the rest of the descriptor says for this kind is written before. */
static inline void slice_become(struct slice *s, enum slice_kind kind)
{
    __atomic_store_n(&s->kind, kind, __ATOMIC_RELEASE);
}

/* Bytes of the run that begins here. */
static inline size_t slice_run_bytes(const struct slice *s)
{
    return (size_t)s->slices << SLICE_SHIFT;
}

#endif
