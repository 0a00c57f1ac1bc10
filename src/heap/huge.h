/* SPDX-License-Identifier: MIT
 *
 * Whole huge pages, and when to break one.  Purging a part of a huge page splits it first: the system takes a
 * tenth of a millisecond and more for that, the program's threads wait meanwhile for any of its pages, and what stays
 * has lost its huge page.  While the program works that is done only where most of the page goes.
 *
 * The system is not asked whether a page is huge: those of the dense arena are for which that was asked, until they
 * were split here.  In the arena for large blocks every one is broken: most are not huge, and what goes there is large.
 * All in a pass, but for huge_ask.
 */
#ifndef SUTLER_HEAP_HUGE_H
#define SUTLER_HEAP_HUGE_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

/* Whether a part of each page that these slices lie in, and the other free parts of it after that, are worth a split; true
 * if none is needed.  Looks at descriptors that may be changing: the answer only costs time if it is wrong. */
bool huge_is_worth_splitting(uint32_t first, size_t slices);

/* Whether the page this slice lies in was one, of the dense arena, and was split. */
bool huge_was_split(uint32_t slice);

/* The huge pages a range covers only a part of: an address in each; returns how many.  May be called without the lock. */
unsigned huge_parts(void *address, size_t bytes, void *part[2]);

/* A part of the page at this address is about to be purged: it is split. */
void huge_split(void *address);
/* By who holds all of the huge page that begins at this slice: asks for one.  False if it was split and has not been
 * purged whole since (the system keeps its table of small pages), or that would take more mappings than a process
 * should have. */
bool huge_ask(uint32_t first);

/* Whole pages are purged: they will be what is asked for then.  By who holds them. */
void huge_note_whole(uintptr_t first, uintptr_t end);

#endif
