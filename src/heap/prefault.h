/* SPDX-License-Identifier: MIT
 *
 * Prefaulting: the system puts pages behind memory that nobody has, so that whoever takes it does not wait.
 *
 * A huge page is asked for immediately before it is prefaulted, and only then handed over; all other memory of the
 * dense arena is told to have small pages.  So nobody else ever waits for a huge page to be cleared, which
 * takes a tenth of a millisecond, and milliseconds where the system's host has to find the memory first.
 *
 * The manager does that ahead of the program (prefault_pool.h).  Where there is none, or none at the moment, the thread
 * that comes to the first slice of a huge page does it there, while the price is fair (huge_price.h).
 */
#ifndef SUTLER_HEAP_PREFAULT_H
#define SUTLER_HEAP_PREFAULT_H

#include "heap/prefault_pool.h"

/* A piece out of prefault_pool_next, handed over when its pages are there.  Touched page by page: that leaves content
 * alone, may stop or be late at any moment, and holds the lock the program's own mmap needs for no longer than a page
 * (Linux 6.4).  In a pass. */
void prefault_piece(const struct prefault_piece *piece);

/* Finds out what small pages cost (huge_price.h) where that is not known, with some that nobody needs. */
void prefault_learn_price(void);

/* For slices the caller has just taken for a superblock: if a huge page begins in them, and nobody else prefaults,
 * prefaults that page, together with the part of it that lies behind them and is still free.  No lock held. */
void prefault_own(uint32_t first, size_t slices);

#endif
