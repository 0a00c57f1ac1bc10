/* SPDX-License-Identifier: MIT
 *
 * Large blocks that are being filled.  huge_policy.h goes by the blocks of before, and so knows nothing of the first
 * ones, nor of many that are taken together and filled later.  The manager watches fresh blocks.  Once the first huge
 * page of one is full and the next is begun, the program fills it from the front: the manager puts huge pages there
 * ahead of the program, and while their price is fair (huge_price.h) asks for the rest, too.
 *
 * How far the program has come is seen by pages that are left out: each *lead* that is prefaulted ends before a huge
 * page that is not, the *mark*.  When its first page is there, the program has reached it, and the next lead lies
 * behind it: a huge page, or a quarter of what was filled, if the program will need that within 20 ms.  So a program
 * that stops has no more than that in vain, and 32 MiB at most.
 *
 * A block must not be given back or moved while the manager has a piece of it in hand: filling_forget waits for that.
 */
#ifndef SUTLER_HEAP_FILLING_H
#define SUTLER_HEAP_FILLING_H

#include "heap/prefault_pool.h"

/* Shorter blocks are filled before the manager would see it. */
#define FILLING_BYTES_MIN ((size_t)8 << 20)
#define FILLING_AHEAD_MAX ((size_t)32 << 20)
/* Where the last block was filled, at least so much. */
#define FILLING_AHEAD_EXPECTED ((size_t)16 << 20)

/* ---- by whoever takes and gives blocks ---- */

/* This block was taken, and none of its pages are there.  Raises demand. */
void filling_note(const void *block, size_t bytes);
/* True if there is one that nobody has looked at. */
extern _Atomic bool filling_is_new;
/* It is about to be given back, or its size or place to change; returns whether it was watched.  May wait until the
 * manager has brought a piece, mostly a quarter of a millisecond. */
bool filling_forget(const void *block);
/* It was watched before that, and now is here and so large.  Raises demand. */
void filling_go_on(const void *block, size_t bytes);
/* In a child, which has no manager yet. */
void filling_recover(void);

/* ---- by the manager, in a pass ---- */

/* Looks how far the blocks are filled: none is watched; they are as at the last look; one is new or further. */
enum filling { filling_none, filling_rests, filling_goes_on };
enum filling filling_look(uint64_t now_ns);
/* Whether there is a piece to bring. */
bool filling_is_due(void);
/* The next piece to bring: a huge page of a block; false if there is none.  Then filling_bring has to follow, which
 * returns false if the system cannot do it: then the block is watched no more. */
bool filling_next(struct prefault_piece *piece);
bool filling_bring(const struct prefault_piece *piece);

#endif
