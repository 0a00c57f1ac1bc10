/* SPDX-License-Identifier: MIT
 *
 * Slices: what the descriptor of every slice says, whatever the slice is used for.  Slices that belong together (a
 * superblock, a large block, a free span) are described by the first of them, which says how many they are; the others
 * say at most which one is the first.  What a superblock has beyond that follows in the same descriptor (superblock.h).
 *
 * Descriptors lie in an array, 1 << DESCRIPTOR_SHIFT bytes each; they are never unmapped, and may be read at any time
 * without a lock.  A reader that holds nothing loads `kind` first.
 *
 * Who may write what.  A slice belongs to the span lock while it is in a bin, and else to whoever took it out: the
 * owner of the superblock, the holder of the large block, a pass, a thread that is about to free it.
 *   kind         whoever it belongs to, after the rest of the descriptor.  Large to kept by compare-and-swap, for two
 *                threads may free the block at once
 *   next, prev   under the lock of the list
 *   first        whoever makes it the end of a free span, before that
 *   to_head      whoever makes it a tail, before that, or frees it
 *   slices       whoever makes the run, before that
 *   content      whoever it belongs to while it is free; the same of is_aged
 *   is_large     under the span lock
 *   was_zero     the holder of the large block
 *   huge         in a pass; or whoever holds all of the huge page: these may be two at once, so by atomic operations
 */
#ifndef SUTLER_HEAP_SLICE_H
#define SUTLER_HEAP_SLICE_H

#include "base/compiler.h"
#include "heap/layout.h"
#include "heap/region.h"

/* What a slice is.  Where not drawn otherwise it is unknown in between, in the hands of one thread:
 *
 *      unknown -> free, free_end -> unknown        arena_insert, arena_remove; under the span lock
 *      unknown -> superblock, tail -> unknown      superblock_format, span_give
 *      unknown -> large -> kept -> unknown         span_block_take, free_once, span_give
 *                 large <- kept                    large_take_kept
 *      superblock -> quarantine                    superblock_quarantine_if; for ever
 *      unknown <-> hole                            region_open */
enum slice_kind {
    slice_unknown,     /* never used, or inside a free or large span */
    slice_superblock,  /* first slice of a superblock */
    slice_tail,        /* a later slice of a superblock */
    slice_large,       /* first slice of a large block */
    slice_kept,        /* the same, freed and kept for the next one (span_cache.h) */
    slice_free,        /* first slice of a free span */
    slice_free_end,    /* last slice of a free span of more than one */
    slice_quarantine,  /* first slice of a superblock found damaged: its memory is never used again */
    slice_hole,        /* not of the region: something else may lie there */
};

#define SLICE_NONE UINT32_MAX

/* What the pages of a slice hold, as far as it is known:
 *
 *      zero -> prefaulted         slice_prefaulted, of a free slice
 *      prefaulted -> zero         slice_taken, or slice_purged
 *      used -> zero               slice_purged
 *      zero, used -> used         slice_given
 *
 * A slice that is taken keeps what it was, and nobody writes down what the program does to it: whoever has it starts
 * from there (superblock.h: dirty), and it is used when it is given. */
enum content {
    content_zero,       /* reads as zeros.  Free, it has no pages: it was never used, or has been purged since */
    content_prefaulted, /* reads as zeros, and its pages are there, ahead of demand (prefault_pool.h); it is free */
    content_used,       /* may hold anything */
};

/* In `huge` of the slice where a huge page begins. */
#define HUGE_ASKED 1u /* one was asked for here */
#define HUGE_SPLIT 2u /* it was split (huge.h) */
#define HUGE_REFUSED 4u /* it could not be made of small ones */
#define HUGE_FULL 8u    /* times this: looks in a row that found all its small pages there, up to HUGE_FULL_MAX */
#define HUGE_FULL_MAX 7u
#define HUGE_SMALL 64u /* the system was told to make none */

struct slice {
    ptrdiff_t to_head; /* slice_tail: bytes from this descriptor to its superblock's first, negative; else 0 */
    union {
        uint32_t next;  /* list neighbours, by slice number: superblocks of a heap, free spans of a bin */
        uint32_t first; /* slice_free_end: the first slice of the run it is in */
    };
    uint32_t prev;
    uint32_t slices; /* length of the run, in its first slice */
    uint8_t kind;    /* enum slice_kind */
    uint8_t content; /* enum content */
    uint8_t huge;    /* HUGE_ flags */
    bool is_large : 1; /* it is of the arena for large blocks */
    bool is_aged : 1;  /* free, with pages: the last purge pass has seen it so */
    bool was_zero : 1; /* slice_large: all of it was zero when it was taken, and it has not been freed since */
};

_Static_assert(sizeof(struct slice) == 24, "leaves the rest of the first line to superblocks");
_Static_assert(offsetof(struct slice, to_head) == SLICE_TO_HEAD, "shared with assembly");
_Static_assert(offsetof(struct slice, kind) == SLICE_KIND, "shared with assembly");
_Static_assert(slice_superblock == SLICE_SUPERBLOCK, "shared with assembly");

static inline struct slice *slice_at(uint32_t number)
{
    return (struct slice *)(hot.descriptors + ((size_t)number << DESCRIPTOR_SHIFT));
}

static inline uint32_t slice_number(const struct slice *s)
{
    return (uint32_t)(((const char *)s - hot.descriptors) >> DESCRIPTOR_SHIFT);
}

/* The first of the superblock whose tail it is; itself if it is none. */
static inline struct slice *slice_head(struct slice *s)
{
    return (struct slice *)((char *)s + __atomic_load_n(&s->to_head, __ATOMIC_ACQUIRE));
}

static inline enum slice_kind slice_kind(const struct slice *s)
{
    return __atomic_load_n(&s->kind, __ATOMIC_ACQUIRE);
}

/* Whether the drawing above has this step; or the slice is of this kind already, as a child of a fork may find. */
static inline bool slice_may_become(enum slice_kind from, enum slice_kind to)
{
    switch (to) {
    case slice_unknown:
        return from != slice_large && from != slice_quarantine;
    case slice_large:
        return from == slice_unknown || from == slice_kept;
    case slice_kept:
        return from == slice_large;
    case slice_quarantine:
        return from == slice_superblock;
    default:
        return from == slice_unknown || from == to;
    }
}

/* The rest of the descriptor is written before. */
static inline void slice_become(struct slice *s, enum slice_kind kind)
{
    ASSERT(slice_may_become(s->kind, kind));
    __atomic_store_n(&s->kind, kind, __ATOMIC_RELEASE);
}

/* ---- lists: `head` is the number + 1 of the first slice, 0 if there is none; under the lock of the list ---- */

static inline void slice_list_insert(uint32_t *head, struct slice *s)
{
    s->prev = SLICE_NONE;
    s->next = *head - 1;
    if (*head != 0)
        slice_at(*head - 1)->prev = slice_number(s);
    *head = slice_number(s) + 1;
}

static inline void slice_list_remove(uint32_t *head, const struct slice *s)
{
    if (s->next != SLICE_NONE)
        slice_at(s->next)->prev = s->prev;
    if (s->prev != SLICE_NONE)
        slice_at(s->prev)->next = s->next;
    else
        *head = s->next + 1;
}

/* ---- what it holds: by whoever the slice belongs to ---- */

static inline bool slice_has_pages(const struct slice *s)
{
    return s->content != content_zero;
}

static inline bool slice_is_in_bin(const struct slice *s)
{
    return s->kind == slice_free || s->kind == slice_free_end;
}

/* Its pages are there, and zero; it is out of the bins. */
static inline void slice_prefaulted(struct slice *s)
{
    ASSERT(s->kind == slice_unknown && s->content == content_zero);
    s->content = content_prefaulted;
}

/* It is number `i` of the slices of a superblock, behind its first. */
static inline void slice_become_tail(struct slice *s, unsigned i)
{
    __atomic_store_n(&s->to_head, -((ptrdiff_t)i << DESCRIPTOR_SHIFT), __ATOMIC_RELEASE);
    slice_become(s, slice_tail);
}

/* It was taken out of the free ones. */
static inline void slice_taken(struct slice *s)
{
    ASSERT(s->kind == slice_unknown);
    if (s->content == content_prefaulted)
        s->content = content_zero;
    s->is_aged = false;
}

/* It is free again.  `is_aged`: it has not been used since the last purge pass. */
static inline void slice_given(struct slice *s, bool is_aged)
{
    ASSERT(!slice_is_in_bin(s));
    ASSERT(s->content != content_prefaulted);
    __atomic_store_n(&s->to_head, 0, __ATOMIC_RELEASE);
    slice_become(s, slice_unknown);
    s->content = content_used;
    s->is_aged = is_aged;
    s->was_zero = false;
}

/* A purge pass has seen it free. */
static inline void slice_seen_free(struct slice *s)
{
    ASSERT((s->kind == slice_unknown || slice_is_in_bin(s)) && slice_has_pages(s));
    s->is_aged = true;
}

/* The system has its pages back; it is out of the bins. */
static inline void slice_purged(struct slice *s)
{
    ASSERT(s->kind == slice_unknown && slice_has_pages(s));
    s->content = content_zero;
    s->is_aged = false;
}

#endif
