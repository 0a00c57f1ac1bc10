/* SPDX-License-Identifier: MIT
 *
 * The prefault pool: free memory whose pages were put behind it ahead of demand, so that the program does not wait for
 * the system when it grows (Herrmann's bins and MMT's speculative bulk preallocation, carried from blocks to pages).
 *
 * Superblocks are taken one after the other from the front of one free run: the fresh end of the region, or a
 * large free span.  The prediction is that this goes on.  The pool lies ahead of the front: its size starts at two
 * huge pages, doubles when the program has caught up with it (a miss), halves when it was purged unused, is no more
 * than the program's pace asks for, never more than an eighth of what is in use or 4 MiB, and never more than 8 MiB:
 * what is prefaulted just ahead of the program it finds in the caches.  What lies unused is purged by the pass that
 * purges free spans.
 *
 * What is being prefaulted is in nobody's hands but the manager's (prefault.h).  A program that comes to it meanwhile
 * takes what lies behind it, and comes back to it.  The pool is zero, and its slices stay marked so.
 *
 * Only superblocks of small blocks are prefaulted: of large blocks the program may never touch a part.
 */
#ifndef SUTLER_HEAP_PREFAULT_POOL_H
#define SUTLER_HEAP_PREFAULT_POOL_H

#include "heap/demand.h"
#include "heap/span.h"
#include "os/os.h"

struct prefault_pool_counts {
    size_t reserve_bytes; /* prefaulted and not taken */
    size_t target_bytes;
    size_t provided_bytes, wasted_bytes; /* prefaulted since the start; purged without having been taken */
    size_t hit_bytes, miss_bytes;        /* taken by superblocks: prefaulted; not (reused memory is neither) */
};
struct prefault_pool_counts prefault_pool_counts(void);

/* The next piece to prefault: a slice, or, if `huge` and there are huge pages there, a whole one; false if the pool is
 * full or there is nothing to prefault for.  It is the caller's until he hands it over.  `demanded_at` is where the
 * thread that demands it ran.  Call with no lock held. */
#define PREFAULT_PIECE_MAX HUGE_PAGE_BYTES
struct prefault_piece {
    void *address;
    size_t bytes;
    bool is_huge;
    struct os_place demanded_at;
};
bool prefault_pool_next(bool huge, struct prefault_piece *piece);

/* The slices that follow the caller's up to the end of the huge page that begins at `page`, among his; false unless all of
 * them are free and none of the huge page's holds anything.  The same holds of them. */
bool prefault_pool_take_rest(uint32_t first, size_t slices, uint32_t page, struct prefault_piece *rest);

/* They are free again; and part of the pool, if they are prefaulted. */
void prefault_pool_hand_over(const struct prefault_piece *piece, bool is_prefaulted);

/* Whether somebody prefaults what the program will take. */
bool prefault_pool_is_served(void);

/* The program is seen to take so many bytes in the time that the pool has to last: more of it would lie idle. */
void prefault_pool_expect(size_t bytes);
/* No demand is raised until then: nobody could serve it, and telling the manager costs the program a wake each time. */
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
