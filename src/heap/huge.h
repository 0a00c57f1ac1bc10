/* SPDX-License-Identifier: MIT
 *
 * Whole huge pages, and when to break one.  Purging a part of a huge page splits it first: the system takes a
 * tenth of a millisecond and more for that, the program's threads wait meanwhile for any of its pages, and what stays
 * has lost its huge page.  While the program works that is done only where most of the page goes.
 *
 * The system is not asked whether a page is huge.  A page counts as huge once that was asked for, until it is split
 * here.  In the arena for large blocks most are not huge, and any may be broken unless such blocks are being filled.
 * All in a pass, but for what says it is not.
 */
#ifndef SUTLER_HEAP_HUGE_H
#define SUTLER_HEAP_HUGE_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

/* True if no huge page that these slices lie in needs a split, or most of each that does would go, now or later.  The
 * descriptors may be changing: a wrong answer only costs time. */
bool huge_is_worth_splitting(uint32_t first, size_t slices);

/* True if the system was asked to make a huge page of those around this slice, in either arena, or does so unasked. */
bool huge_is_advised(uint32_t slice);

/* True if this slice lies in a huge page of the dense arena that was split. */
bool huge_was_split(uint32_t slice);

/* ---- not only in a pass ---- */

/* Finds the huge pages of which the range covers only a part, and stores an address in each; returns how many. */
unsigned huge_parts(void *address, size_t bytes, void *part[2]);

/* Splits the huge page at this address, of which a part is about to be purged. */
void huge_split(void *address);
/* Asks for the huge page that begins at this slice, all of which the caller holds.  False if it was split and not
 * purged whole since (the system keeps its table of small pages), or if the process would have too many mappings. */
bool huge_ask(uint32_t first);
/* Asks for whole huge pages of a large block, which the caller holds; only the last may be another's in part.  Does
 * nothing if the process would have too many mappings.  The second takes back what was asked. */
void huge_ask_run(void *address, size_t bytes);
void huge_unask_run(void *address, size_t bytes);
/* True if the system was asked for any huge page that these bytes, of the region or not, lie in. */
bool huge_is_asked_for(const void *address, size_t bytes);

/* This range, which the caller holds, is purged: where it covers a whole huge page, a new one may be asked for. */
void huge_note_purged(const void *address, size_t bytes);

/* ---- in a pass ---- */

/* How many small pages are there of a range of at most a huge page; SIZE_MAX if that is not known. */
size_t huge_count_there(const void *address, size_t bytes);
/* True if all of the huge page at this address are; false if that is not known. */
bool huge_is_full(const void *page);

/* ---- the huge page that begins at this slice, and which nobody has to hold (collapse.h) ---- */

/* True if it may be of small pages: none was asked for, or it was split, and the system has not refused. */
bool huge_may_collapse(uint32_t first);
/* True if superblocks hold all of it, and three quarters of that are in use; nearly all, where the rest would be
 * purged. */
bool huge_is_in_use(uint32_t first);
/* Takes down whether all of it was there at this look.  True if it was, and before that at the last look as well; or
 * at the last HUGE_FULL_MAX, if it was split. */
bool huge_note_look(uint32_t first, bool is_full);
enum huge_collapsed {
    huge_is_made,
    huge_has_none, /* there is no huge page to be had; nothing has changed */
    huge_cannot,   /* for the first time: after many more looks it may be tried again; else when all of it was purged */
};
/* Has the system make it of the small pages, all of which have to be the process's own, as `pagemap` (os_pagemap_open)
 * says. */
enum huge_collapsed huge_collapse(uint32_t first, long pagemap);

#endif
