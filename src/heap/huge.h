/* SPDX-License-Identifier: MIT
 *
 * Whole huge pages, and when to break one.  Purging a part of a huge page splits it first: the system takes a
 * tenth of a millisecond and more for that, the program's threads wait meanwhile for any of its pages, and what stays
 * has lost its huge page.  While the program works that is done only where most of the page goes.
 *
 * The system is not asked whether a page is huge.  In the dense arena a page counts as huge once that was asked for,
 * until it is split here.  In the arena for large blocks any page may be broken: most are not huge, and what goes is
 * large.  All in a pass, but for huge_ask.
 */
#ifndef SUTLER_HEAP_HUGE_H
#define SUTLER_HEAP_HUGE_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

/* True if no huge page that these slices lie in needs a split, or most of each that does would go, now or later.  The
 * descriptors may be changing: a wrong answer only costs time. */
bool huge_is_worth_splitting(uint32_t first, size_t slices);

/* True if this slice lies in a huge page of the dense arena that was split. */
bool huge_was_split(uint32_t slice);

/* Finds the huge pages of which the range covers only a part, and stores an address in each; returns how many.  Not
 * only in a pass. */
unsigned huge_parts(void *address, size_t bytes, void *part[2]);

/* Splits the huge page at this address, of which a part is about to be purged. */
void huge_split(void *address);
/* Asks for the huge page that begins at this slice, all of which the caller holds.  False if it was split and not
 * purged whole since (the system keeps its table of small pages), or if the process would have too many mappings. */
bool huge_ask(uint32_t first);

/* These whole pages, which the caller holds, are purged: a new one may be asked for. */
void huge_note_whole(uintptr_t first, uintptr_t end);

#endif
