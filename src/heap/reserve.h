/* SPDX-License-Identifier: MIT
 *
 * The reserve: free memory whose pages have been made ready ahead of demand, so that the program does not wait for
 * the system when it grows (Herrmann's bins and MMT's speculative bulk preallocation, carried from blocks to pages).
 *
 * Superblocks are taken one after the other from the front of one free run: the fresh end of the region, or a
 * large free span.  The prediction is that this goes on.  The reserve lies ahead of the front: its size starts at two
 * huge pages, doubles when the program has caught up with it (a miss), halves when it was purged unused, is no more
 * than the program's pace asks for, never more than an eighth of what is in use or 4 MiB, and never more than 8 MiB:
 * what is made ready just ahead of the program it finds in the caches.  Unused reserve is purged by the pass that
 * purges free spans.
 *
 * What is being made ready is in nobody's hands but the manager's (ready.h).  A program that comes to it meanwhile takes what
 * lies behind it, and comes back to it.  The reserve is zero, and its slices stay marked so.
 *
 * Only superblocks of small blocks are provided for: of large blocks the program may never touch a part.
 */
#ifndef SUTLER_HEAP_RESERVE_H
#define SUTLER_HEAP_RESERVE_H

#include "heap/demand.h"
#include "heap/span.h"
#include "os/os.h"

struct reserve_counts {
    size_t reserve_bytes; /* ready and not taken */
    size_t target_bytes;
    size_t provided_bytes, wasted_bytes; /* made ready since the start; purged without having been taken */
    size_t hit_bytes, miss_bytes;        /* taken by superblocks: ready; not ready (reused memory is neither) */
};
struct reserve_counts reserve_counts(void);

/* The next piece to make ready: a slice, or, if `huge` and there are huge pages there, a whole one; false if the reserve is
 * full or there is nothing to provide for.  It is the caller's until he hands it over.  `demanded_at` is where the thread
 * that demands it ran.  Call with no lock held. */
#define RESERVE_PIECE_MAX HUGE_PAGE_BYTES
struct reserve_piece {
    void *address;
    size_t bytes;
    bool is_huge;
    struct os_place demanded_at;
};
bool reserve_next(bool huge, struct reserve_piece *piece);

/* The slices that follow the caller's up to the end of the huge page that begins at `page`, among his; false unless all of
 * them are free and none of the huge page's holds anything.  The same holds of them. */
bool reserve_take_rest(uint32_t first, size_t slices, uint32_t page, struct reserve_piece *rest);

/* They are free again; and part of the reserve, if they are ready. */
void reserve_hand_over(const struct reserve_piece *piece, bool is_ready);

/* Whether somebody makes ready what the program will take. */
bool reserve_is_served(void);

/* The program is seen to take so many bytes in the time that the reserve has to last: more of it would lie idle. */
void reserve_expect(size_t bytes);
/* No demand is raised until then: nobody could serve it, and telling the manager costs the program a wake each time. */
void reserve_rest(uint64_t until_ns);

/* ---- for spans; span_lock is held ---- */
struct arena;
/* `slices` are taken from the front of `have` free ones. */
void reserve_follow(const struct arena *a, uint32_t first, size_t slices, size_t have);
/* Slices have left the free spans. */
void reserve_count_taken(uint32_t first, size_t slices);
/* Ready pages have been purged. */
void reserve_count_wasted(size_t bytes);
/* A purge found it unused. */
void reserve_shrink(void);
void reserve_forget(void);

#endif
