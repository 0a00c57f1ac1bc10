/* SPDX-License-Identifier: MIT
 *
 * The prefault pool: free memory whose pages were put behind it ahead of demand, so that the program does not wait for
 * the system when it grows (Herrmann's bins and MMT's speculative bulk preallocation, carried from blocks to pages).
 *
 * Superblocks are taken one after the other from the front of one free run: the fresh end of the region, or a large
 * free span.  The prediction is that this goes on, so the pool lies ahead of the front.  Its size starts at two huge
 * pages, doubles when the program has caught up with it (a miss), and halves when it was purged unused.  There is none
 * before superblocks have taken 8 MiB, so a program of large blocks gets none.  It is no more than a quarter of what
 * they have taken, than the program's pace asks for (or a huge page), an eighth of what is in use (or 4 MiB), and 8
 * MiB: the program still finds in the caches what is prefaulted just ahead of it.  A purge of free spans takes what lies
 * unused.
 *
 * While a piece is prefaulted nobody but the manager has it (prefault.h).  A program that comes to it takes what lies
 * behind, and comes back later.  The pool is zero, and its slices stay marked so.
 *
 * Only superblocks of small blocks are: the program may never touch a part of a large block (filling.h).
 */
#ifndef SUTLER_HEAP_PREFAULT_POOL_H
#define SUTLER_HEAP_PREFAULT_POOL_H

#include "heap/demand.h"
#include "heap/span.h"
#include "os/os.h"

/* The time that what is prefaulted has to last: until the manager is awake and has cleared a huge page or two.  What a
 * slower program would take later is memory that lies idle. */
#define PREFAULT_LEAD_NS 20000000ull

struct prefault_pool_counts {
    size_t reserve_bytes; /* prefaulted and not taken */
    size_t target_bytes;
    size_t provided_bytes, wasted_bytes; /* prefaulted since the start; purged without having been taken */
    size_t hit_bytes, miss_bytes;        /* taken by superblocks: prefaulted; not (reused memory is neither) */
};
struct prefault_pool_counts prefault_pool_counts(void);

/* The next piece to prefault: a slice, or, if `huge` and there are huge pages there, a whole one; false if the pool is
 * full or there is nothing to prefault for.  It is the caller's until handed over.  `demanded_at` is where the thread
 * ran that raised the demand.  No lock held. */
#define PREFAULT_PIECE_MAX HUGE_PAGE_BYTES
struct prefault_piece {
    void *address;
    size_t bytes;
    bool is_huge;
    struct os_place demanded_at;
};
bool prefault_pool_next(bool huge, struct prefault_piece *piece);

/* The huge page that begins at `page`, one of the caller's slices, may end behind them: takes the slices of that rest,
 * to be handed over as well.  False unless all of them are free and nothing in the huge page has pages. */
bool prefault_pool_take_rest(uint32_t first, size_t slices, uint32_t page, struct prefault_piece *rest);

/* The piece is free again, and part of the pool if it is prefaulted. */
void prefault_pool_hand_over(const struct prefault_piece *piece, bool is_prefaulted);

/* True if somebody prefaults for the program, or memory is too short for that. */
bool prefault_pool_is_served(void);

/* How many bytes the program is expected to take in the time that the pool has to last: more would lie idle. */
void prefault_pool_expect(size_t bytes);
/* Until `until_ns` no demand is raised: nobody could serve it, and each demand costs the program a wake. */
void prefault_pool_rest(uint64_t until_ns);

/* ---- for spans; span_lock is held ---- */
struct arena;
/* `slices` are taken from the front of `have` free ones. */
void prefault_pool_follow(const struct arena *a, uint32_t first, size_t slices, size_t have);
/* Slices have left the free spans. */
void prefault_pool_count_taken(uint32_t first, size_t slices);
/* Prefaulted pages have been purged. */
void prefault_pool_count_wasted(size_t bytes);
/* A purge found it unused. */
void prefault_pool_shrink(void);
void prefault_pool_forget(void);

#endif
