/* SPDX-License-Identifier: MIT
 *
 * The hardened library's malloc and free: the plain ones, and around them what costs least while the block's lines are
 * in the processor's cache.
 *
 *     malloc(size)                                       free(p)
 *         p = plain malloc of size + 1                       its state is live?  else invalid, or a double free
 *         the block is zero but for its next?                the canary is whole?  else an overflow
 *         canary behind `size`                               state = freed; clear the block
 *         state = live, and how much more than `size`        old = exchanged with a place of the quarantine
 *                                                            old is zero?  else a write after free
 *                                                            plain free of old
 *
 * The state is out of band (marks/state.h).  Blocks above CLASS_BYTES_MAX are in large.c; those that are mappings of
 * their own have their state in the table of mappings.
 */
#ifndef SUTLER_HARDENED_HARDENED_H
#define SUTLER_HARDENED_HARDENED_H

#include <string.h>

#include "core/core.h"
#include "hardened/quarantine.h"
#include "heap/signal_safe.h"
#include "marks/canary.h"
#include "marks/state.h"

/* What a free says of the block, beyond its address. */
struct claim {
    const char *function; /* for reports */
    const void *caller;
    enum family family;
    bool has_size, has_alignment;
    size_t size, alignment;
};

/* A live block, as its state has it. */
struct live {
    size_t bytes; /* of the block, without the guard */
    size_t size;  /* that were asked for */
    size_t guard; /* bytes behind it that cannot be touched; a mapping's room is among them */
    enum family family;
    enum block_kind kind;
    uint8_t state; /* as it was read, of a block of the region */
};

/* So much of a block is read again when it is handed out.  All of it is read when it leaves quarantine: then its lines
 * are still in the cache, as a rule, and when it is handed out they are not. */
#define CHECKED_BYTES_MAX 64u

/* ---- malloc.c ---- */

/* A block of the family; NULL without memory. */
void *harden_allocate(size_t size, size_t alignment, bool *zero, enum family family);
/* Gives a block of the plain library, of `bytes`, to the program, who asked for `size`. */
void *harden_block(void *p, size_t size, size_t bytes, enum family family);

/* ---- free.c ---- */

void harden_free(void *p, struct claim claim);
/* The block of a superblock, with which nothing is wrong, is free from here on. */
void harden_retire(void *p, struct live live, const char *function, const void *caller);
/* Looks at what leaves quarantine and gives it to the plain library. */
void harden_release(void *p);
/* Reports what is wrong with a live block that is freed or resized so. */
void harden_check(const void *p, struct live live, struct claim claim);

/* Whether there is a state for `p`; if so where no other thread changes the region that is all there is to look at. */
static inline bool has_state(const void *p)
{
    return likely((uintptr_t)p - hot.region_base < hot.flat_bytes) && (uintptr_t)p % BLOCK_ALIGNMENT == 0;
}

/* ---- large.c: spans, mappings, and blocks of the area for signal handlers ---- */

enum found {
    found_nothing,
    found_freed,
    found_live,
    found_unknown /* a signal handler must not wait for the table of mappings */
};
/* What is at `p`, wherever it lies; of a freed block the bytes and the kind, if they can be told. */
enum found harden_find(const void *p, struct live *live);

void *large_harden(size_t size, size_t alignment, bool *zero, enum family family);
void large_unharden(void *p, struct claim claim);
/* In place, or moved by the system; NULL: neither.  What becomes small keeps room of a large one. */
void *large_reharden(void *p, struct live live, size_t size);
/* A mapping for a span that grows: the system moves it without copying.  NULL if that is not to be, or cannot. */
void *large_harden_grown(size_t size, enum family family);
/* Gives the plain library what is in quarantine, or the sweep; true if there was any. */
bool large_release_all(void);
/* A freed block that is none of a superblock's, still in quarantine or kept. */
bool large_kept(const void *p, struct live *live);
/* Gives it to the plain library. */
void large_give_back(void *p);

/* True for addresses whose states are mapped (marks/state.h). */
static inline bool harden_has_state(const void *p)
{
    return region_contains(p) || signal_safe_contains(p);
}

/* A live block of a superblock, where the fast paths are open.  False: `harden_find` knows. */
static inline bool find_quickly(const void *p, struct live *live)
{
    if (unlikely((uintptr_t)p - hot.region_base >= hot.region_bytes) || unlikely((uintptr_t)p % BLOCK_ALIGNMENT != 0))
        return false;
    const uint8_t state = state_get(p);
    const struct superblock *s = superblock_of(p);
    if (unlikely(!state_is_live(state)) || unlikely(s->slice.kind != slice_superblock))
        return false;
    live->bytes = s->block_bytes;
    live->size = live->bytes - state_slack(p, state, live->bytes);
    live->family = state_family(state);
    live->kind = block_superblock;
    live->state = state;
    return true;
}

/* ---- zeros ---- */

typedef uint64_t words16 __attribute__((vector_size(16)));

/* Where words number `i` are, if there are others behind them; else 0.  A branch, if the compiler made one of it, would
 * be foretold no better than sizes are. */
#define AT_BLOCK(i, bytes) ((size_t)((bytes) > 16 * (i) + 16) * (16 * (i)))

/* Clears what is not zero, a page at a time (clear.c): a page the program never wrote to is only read, and stays the one
 * page of zeros that the system has for all of them.  Worth it for so many bytes. */
#define CLEARED_BY_PAGES 8192u
void clear_by_pages(char *p, size_t bytes);

/* Clears a block: a multiple of 16 bytes, aligned so.  Up to 64 bytes there is no branch: which sizes come next cannot
 * be foreseen, and a wrong guess costs more than a few stores that overlap. */
static inline void clear_block(void *p, size_t bytes)
{
    char *at = p, *last = at + bytes - 16;
    const words16 zero = {0, 0};
#define CLEAR(to) (*(words16 *)(to) = zero)
    if (bytes <= 64) {
        CLEAR(at), CLEAR(at + AT_BLOCK(1, bytes)), CLEAR(at + AT_BLOCK(2, bytes)), CLEAR(last);
        return;
    }
    if (unlikely(bytes >= CLEARED_BY_PAGES)) {
        clear_by_pages(p, bytes);
        return;
    }
    if (unlikely(bytes > 512)) {
        memset(p, 0, bytes);
        return;
    }
    for (char *end = last - 48; at < end; at += 64)
        CLEAR(at), CLEAR(at + 16), CLEAR(at + 32), CLEAR(at + 48);
    CLEAR(last - 48), CLEAR(last - 32), CLEAR(last - 16), CLEAR(last);
#undef CLEAR
}

/* The same for any range; if large, its pages are given back (large.c). */
void clear_bytes(char *p, size_t bytes);

/* Whether all is zero but for the first eight bytes; the same way. */
static inline bool is_clear_behind_next(const void *p, size_t bytes)
{
    static const words16 zero = {0, 0};
    const char *at = p, *end = at + bytes, *none = (const char *)&zero;
    words16 seen = {0, ((const uint64_t *)p)[1]};
#define SEE(from) (seen |= *(const words16 *)(from))
    if (bytes <= 64) {
        SEE(bytes > 16 ? end - 16 : none);
        SEE(bytes > 32 ? at + 16 : none);
        SEE(bytes > 48 ? at + 32 : none);
    } else {
        for (at += 16; at + 64 < end; at += 64)
            SEE(at), SEE(at + 16), SEE(at + 32), SEE(at + 48);
        SEE(end - 64), SEE(end - 48), SEE(end - 32), SEE(end - 16);
    }
#undef SEE
    return (seen[0] | seen[1]) == 0;
}

/* The same of all of it. */
static inline bool is_clear(const void *p, size_t bytes)
{
    const char *at = p, *last = at + bytes - 16;
    words16 seen = *(const words16 *)at;
#define SEE(from) (seen |= *(const words16 *)(from))
    if (bytes <= 64) {
        SEE(at + AT_BLOCK(1, bytes)), SEE(at + AT_BLOCK(2, bytes)), SEE(last);
    } else {
        for (at += 16; at + 48 < last; at += 64)
            SEE(at), SEE(at + 16), SEE(at + 32), SEE(at + 48);
        SEE(last - 48), SEE(last - 32), SEE(last - 16), SEE(last);
    }
#undef SEE
    return (seen[0] | seen[1]) == 0;
}

#endif
