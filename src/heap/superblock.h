/* SPDX-License-Identifier: MIT
 *
 * A superblock: an aligned run of slices holding blocks of one class (Hoard; LFMalloc section 3.2).  It is as long as
 * its class says, or shorter, as a heap's first ones are: then `blocks` is less, and tells how long.  Its last block
 * ends where it ends, and what no block covers lies before the first: so no address in it is taken for the start of a
 * block behind the last.  This file owns its descriptor and what can be done to one superblock at a time; which heap
 * has it, and where it is listed, is heap.h's.
 *
 * The local free list is one 64-bit head, {top free block << 16 | count}.  A free block's first eight bytes, its next,
 * hold the head as it was before the block was pushed, so a pop is load head, load next, store next: nothing is
 * computed, and the one store is the commit of a restartable section.
 *
 * A block exists once all units it touches are carved.  A unit is a power of two: a 128th of the superblock or more, a
 * page or more.  All units are uncarved at birth.  Purging makes them so again; and so does refill, with all units of a
 * superblock whose blocks are all free, in order to carve them in order of address (superblock_begin_anew).
 *
 * Where no block exists, a unit that is not `dirty` holds zeros (but for the first words of blocks that were carved and
 * could not be published).  A unit is dirty if its slice had been used when the superblock was made, or if it was
 * carved when units were made uncarved: then it may hold a part of a block that exists no more.  It is clean again once
 * the system has its pages.  So what is dirty and uncarved is stale: it has pages (purge.c and stale.h give them back).
 * And a block that touches no dirty unit is zero when it is carved.
 *
 * Who may write what.  Each field has one rule; docs/protocol.md shows the interleaving each rule prevents.
 *   freelist    sections of the owning heap; or whoever has the superblock detached
 *   owner       (see superblock_set_owner) under the heap's lock.  Giving up one's own: a section's commit.  Taking
 *               another heap's: store, active slot cleared, fence.  "Detached" is: owner is 0, and a fence has passed
 *               or it was given up by commit
 *   threshold   a section that compares the freelist; or detached
 *   x_remote    hardware atomics, anyone
 *   x_pending_next hardware atomics: 0 not pending.  Never reset by formatting: a late pusher may still hold it
 *   slice       see slice.h
 *   seen        in a pass
 *   whole_bytes with `uncarved`, and read by anyone without a lock
 *   dirty       set when the superblock is made and, detached, before units are uncarved; cleared when the system has
 *               the pages: under the lock of the owning heap, or detached
 *   the rest    under the lock of the owning heap, or detached
 */
#ifndef SUTLER_HEAP_SUPERBLOCK_H
#define SUTLER_HEAP_SUPERBLOCK_H

#include <stdatomic.h>

#include "heap/next.h"
#include "heap/size_class.h"
#include "heap/slice.h"
#include "heap/units.h"

struct heap;

/* Fullness groups, by the part of the superblock that is available (free or not yet carved). */
enum group {
    group_nearly_full, /* less than 1/8 */
    group_eighth,      /* 1/8 to 1/4 */
    group_quarter,     /* 1/4 to 1/2 */
    group_half,        /* 1/2 to 3/4 */
    group_mostly_free, /* 3/4 and more */
    group_empty,       /* no block in the program's hands */
    group_count,
    group_none /* on no list */
};

/* Blocks freed from another heap are sent so many at a time, no more than so many bytes, and no more than this part of
 * the superblock: while they wait, its owner cannot have them. */
#define BATCH_BLOCKS 128u
#define BATCH_BYTES 32768u
#define BATCH_PART 4u
_Static_assert(BATCH_BLOCKS <= UINT8_MAX, "the width of `batch`");

/* What a superblock of the smallest class has room for. */
#define SUPERBLOCK_BLOCKS_MAX 4096

#define THRESHOLD_NEVER 0xffff

/* In `seen`: the superblock was purged looking so, and had no slice left to lend. */
#define SEEN_PURGED 1u
#define SEEN_LENT 2u

/* Two cache lines: threads of other heaps read the first to free a block, and must not be made to wait by the owner's
 * every malloc, which writes the second. */
struct superblock {
    struct slice slice;
    uintptr_t owner; /* a struct heap * */
    union {
        uint64_t threshold_and_sizes; /* written whole */
        struct {
            uint16_t threshold; /* a free that brings the count here calls the notify handler */
            uint16_t blocks;    /* how many there are room for */
            uint32_t block_bytes : 24;
            uint8_t batch; /* blocks freed from another heap are sent so many at a time (outbox.h); 0: one by one */
        };
    };
    uintptr_t base;      /* where the first block starts */
    uint64_t reciprocal; /* of block_bytes (size_class.h) */
    _Atomic uint64_t x_remote; /* {top << 16 | ARMED | count}, linked like the local list from an empty list */
    uint64_t freelist ALIGN_LINE;
    _Atomic uint32_t x_pending_next;
    uint16_t carved; /* blocks that exist */
    uint16_t seen;   /* SEEN_*, and above them what the lists looked like at the last look (purge.c) */
    unit_set uncarved;
    unit_set dirty; /* where no block exists, these may hold something other than zeros */
    uint32_t whole_bytes; /* from `base` on, so much is blocks that exist; `uncarved` says it of the others */
    uint8_t class;
    uint8_t group;
    bool was_stale : 1; /* the last purge pass has seen used pages where nothing is carved (stale.h) */
    bool has_holes : 1; /* what is uncarved was purged out of a huge page, and costs a page fault for each page:
                         * malloc takes fresh memory before it fills these holes (decision 12) */
    bool has_lent : 1;  /* some of its slices are not its own any more (lend.h) */
} __attribute__((aligned(1 << DESCRIPTOR_SHIFT)));

_Static_assert(sizeof(struct superblock) == 1 << DESCRIPTOR_SHIFT, "two cache lines");
_Static_assert(offsetof(struct superblock, slice) == 0, "a superblock is a slice first of all");
_Static_assert(offsetof(struct superblock, freelist) == SUPERBLOCK_FREELIST, "shared with assembly");
_Static_assert(offsetof(struct superblock, owner) == SUPERBLOCK_OWNER, "shared with assembly");
_Static_assert(offsetof(struct superblock, threshold) == SUPERBLOCK_THRESHOLD, "shared with assembly");
_Static_assert(offsetof(struct superblock, base) == SUPERBLOCK_BASE, "shared with assembly");
_Static_assert(offsetof(struct superblock, reciprocal) == SUPERBLOCK_RECIPROCAL, "shared with assembly");
_Static_assert(offsetof(struct superblock, batch) == SUPERBLOCK_BATCH, "shared with assembly");
_Static_assert(sizeof(((struct superblock *)0)->threshold) * 8 == FREELIST_COUNT_BITS, "its low half");

/* ---- freelist heads ---- */

#define REMOTE_ARMED 0x8000u
#define COUNT_MASK 0x7fffu
_Static_assert((REMOTE_ARMED | COUNT_MASK) == (1u << FREELIST_COUNT_BITS) - 1, "ARMED is the bit above the count");

static inline uint64_t freelist_pack(const void *block, unsigned count)
{
    return (uint64_t)(uintptr_t)block << FREELIST_COUNT_BITS | count;
}

static inline void *freelist_top(uint64_t list)
{
    return (void *)(uintptr_t)(list >> FREELIST_COUNT_BITS);
}

static inline unsigned freelist_count(uint64_t list)
{
    return list & COUNT_MASK;
}

/* ---- superblocks, slices, addresses ---- */

static inline struct superblock *superblock_at_slice(uint32_t slice)
{
    return (struct superblock *)slice_at(slice);
}

/* For visits to all slices: NULL if no superblock seems to begin at this one. */
static inline struct superblock *superblock_beginning_at(uint32_t slice)
{
    struct superblock *s = superblock_at_slice(slice);
    return slice_kind(&s->slice) == slice_superblock ? s : NULL;
}

static inline uint32_t superblock_first_slice(const struct superblock *s)
{
    return slice_number(&s->slice);
}

static inline char *superblock_start(const struct superblock *s)
{
    return slice_address(superblock_first_slice(s));
}

/* The superblock this address lies in, if it is in one. */
static inline struct superblock *superblock_of(const void *p)
{
    return (struct superblock *)slice_head(slice_at(slice_of(p)));
}

/* The superblock this address lies in, or NULL: a quick look, which does not find those beyond a gap of the region. */
static inline struct superblock *superblock_at(const void *p)
{
    if ((uintptr_t)p - hot.region_base >= hot.flat_bytes)
        return NULL;
    struct superblock *s = superblock_of(p);
    return s->slice.kind == slice_superblock ? s : NULL;
}

/* The list may be changing: one load. */
static inline uint64_t superblock_freelist(const struct superblock *s)
{
    return __atomic_load_n(&s->freelist, __ATOMIC_ACQUIRE);
}

static inline struct heap *superblock_owner(const struct superblock *s)
{
    return (struct heap *)__atomic_load_n(&s->owner, __ATOMIC_ACQUIRE);
}

static inline void superblock_set_owner(struct superblock *s, struct heap *h)
{
    __atomic_store_n(&s->owner, (uintptr_t)h, __ATOMIC_RELEASE);
}

static inline void superblock_clear_owner(struct superblock *s)
{
    __atomic_store_n(&s->owner, 0, __ATOMIC_RELEASE);
}

static inline bool superblock_is_detached(const struct superblock *s)
{
    return s->owner == 0;
}

static inline uint64_t with_threshold(const struct superblock *s, unsigned threshold)
{
    return (s->threshold_and_sizes & ~0xffffull) | threshold;
}

/* Blocks the program holds, those on their way back through x_remote included. */
static inline unsigned superblock_live(const struct superblock *s, uint64_t list)
{
    return s->carved - freelist_count(list);
}

/* Blocks on either list; they may be changing. */
static inline unsigned superblock_free_blocks(const struct superblock *s)
{
    return freelist_count(superblock_freelist(s)) +
           freelist_count(atomic_load_explicit(&s->x_remote, memory_order_relaxed));
}

/* Blocks there are and could be carved: fewer than there are numbers for if it lent slices. */
unsigned superblock_capacity_lent(const struct superblock *s);
static inline unsigned superblock_capacity(const struct superblock *s)
{
    return likely(!s->has_lent) ? s->blocks : superblock_capacity_lent(s);
}

static inline unsigned superblock_available(const struct superblock *s, uint64_t list)
{
    return superblock_capacity(s) - superblock_live(s, list);
}

/* Room that is not a hole. */
static inline bool superblock_is_carvable(const struct superblock *s)
{
    return s->uncarved != 0 && !s->has_holes;
}

/* Blocks that are free, or that room which is not a hole is there for. */
static inline unsigned superblock_spare(const struct superblock *s, uint64_t list)
{
    return s->has_holes ? freelist_count(list) : superblock_available(s, list);
}

static inline bool superblock_is_mostly_free(const struct superblock *s, uint64_t list)
{
    return superblock_spare(s, list) * 4 >= s->blocks * 3u;
}

/* Block number `i`, carved or not. */
static inline char *superblock_block(const struct superblock *s, size_t i)
{
    return (char *)s->base + i * s->block_bytes;
}

/* Number of the block in which `p`, an address behind `base`, lies. */
static inline unsigned superblock_block_number(const struct superblock *s, const void *p)
{
    return (unsigned)(((unsigned __int128)((uintptr_t)p - s->base) * s->reciprocal) >> 64);
}

/* True if `p`, an address of this superblock, is where a block would start, carved or not.  Before the first, the
 * offset is -k, with k <= block_bytes - BLOCK_ALIGNMENT, and the product 2^64 - k * reciprocal, which is no less. */
static inline bool superblock_is_block_start(const struct superblock *s, const void *p)
{
    return ((uintptr_t)p - s->base) * s->reciprocal < s->reciprocal;
}

/* Units that have pages, and in which there is no block. */
static inline unit_set superblock_stale_units(const struct superblock *s)
{
    return s->dirty & s->uncarved;
}

/* True if a block that exists starts at `p`, as far as a quick look tells: before the first that does not.
 * `whole_bytes` may be changing, but not past a block that somebody has. */
static inline bool superblock_is_block_quick(const struct superblock *s, const void *p)
{
    return likely((uintptr_t)p - s->base < __atomic_load_n(&s->whole_bytes, __ATOMIC_RELAXED) &&
                  superblock_is_block_start(s, p));
}

/* True if p is the start of a block that has been carved. */
bool superblock_is_block(const struct superblock *s, const void *p);

/* Computes what `whole_bytes` should be. */
size_t superblock_count_whole(const struct superblock *s);

/* ---- verbs on one superblock ---- */

/* Makes a fresh span a detached superblock, nothing carved.  `slices`: as many as the class's, or fewer but enough for
 * one block. */
struct superblock *superblock_format(uint32_t first, unsigned class, unsigned slices);

/* How many slices it was made of. */
static inline unsigned superblock_slices(const struct superblock *s)
{
    return s->slice.slices;
}

/* Whether slice number `i` of them is (still) its own. */
static inline bool superblock_has_slice(const struct superblock *s, unsigned i)
{
    return slice_head(slice_at(superblock_first_slice(s) + i)) == &s->slice;
}

/* How sparing carving is: a part of what is carved of the superblock is added at a time, and much at once only to a
 * superblock of a class of which the heap has more than so many.  The hardened library shuffles what is carved together
 * (shuffle.h), so there it is more. */
#ifdef SUTLER_HARDENED
#define CARVED_PART 1u
#define CARVED_SPARINGLY 0u
#else
#define CARVED_PART 4u
#define CARVED_SPARINGLY 4u
#endif

/* Links blocks of uncarved units into a list of their own.  Nothing of the superblock changes until
 * the carving is counted; one whose list could not be published is discounted again. */
enum carve { carve_least, carve_some, carve_many };
struct carving {
    uint64_t list;  /* 0 if nothing was left to carve */
    unit_set units; /* what it uses up */
};
struct carving superblock_carve(const struct superblock *s, enum carve amount);
void superblock_count_carving(struct superblock *s, struct carving carving);
void superblock_discount_carving(struct superblock *s, struct carving carving);

/* Whether what is carved next is likely to be zero, and has no pages yet; and whether this block is zero, which was
 * carved just now, but for its first 8 bytes. */
static inline bool superblock_has_zeros(const struct superblock *s)
{
    return superblock_is_carvable(s) && (s->dirty & s->uncarved & -s->uncarved) == 0;
}
bool superblock_is_zero_block(const struct superblock *s, const void *block);

/* All its blocks were free, and the caller took them off the list: no block exists any more, as after its birth, and
 * all its pages are stale. */
void superblock_begin_anew(struct superblock *s);

/* Counts the carved blocks anew, in a child: carving takes several stores, and its parent may have been in between. */
void superblock_recount(struct superblock *s);

/* What is wrong with a list, or NULL: blocks in range, on block starts, no duplicate, as many as the count says. */
const char *superblock_check_list(const struct superblock *s, uint64_t list);
/* The same for a list that counts as many blocks as exist; faster. */
const char *superblock_check_all_free(const struct superblock *s, uint64_t list);
/* Of a superblock whose blocks are all free: true if those that follow each other on the list lie apart.  Whoever is
 * given them waits for the line of each. */
bool superblock_list_is_scattered(const struct superblock *s);

/* Detached: drops the free blocks on wholly free units and makes those units uncarved; their bits are returned.  They
 * are stale until the caller has given their pages back.  0 and *damage set if the list is broken (nothing was
 * changed).  By one at a time of each: who is in a pass; and who lends (regain.c), which wants whole slices only, for
 * what is carved again is carved unit by unit. */
enum uncarver { by_pass, by_lender };
unit_set superblock_uncarve(struct superblock *s, enum uncarver by, const char **damage);
/* The system has the pages of these uncarved units back. */
static inline void superblock_note_purged(struct superblock *s, unit_set units)
{
    ASSERT((units & ~s->uncarved) == 0);
    s->dirty &= ~units;
}
/* In a child: if its parent was caught doing that, does the rest. */
void superblock_finish_uncarving(struct superblock *s);
/* Bytes of a unit. */
size_t superblock_unit_bytes(const struct superblock *s);
/* The units in slice number `i` of these; none if it lies behind all blocks. */
unit_set superblock_units_of_slice(const struct superblock *s, unsigned i);
/* The units of the blocks that are carved. */
unit_set superblock_units_kept(const struct superblock *s);
/* Detached, after slices were lent: uncarved units that no block has room in any more are no longer uncarved. */
void superblock_forget_lent(struct superblock *s);

#endif
