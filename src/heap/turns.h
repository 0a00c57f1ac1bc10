/* SPDX-License-Identifier: MIT
 *
 * Classes that take turns.  A class that soon wants again the slices that its superblocks lent (regain.c) is one of a
 * few of which the program has much, one after another: to give its memory to and fro costs more than it saves.  So its
 * superblocks are spared for some time.  All heaps count together; a count may be off, it decides nothing else.
 */
#ifndef SUTLER_HEAP_TURNS_H
#define SUTLER_HEAP_TURNS_H

#include "base/compiler.h"

/* A superblock of class `c` lent slices; a heap wants so many for a superblock of `c`. */
void turns_note_lent(unsigned c);
void turns_note_wanted(unsigned c, size_t slices);

/* True if superblocks of class `c` are to lend nothing now. */
bool turns_are_taken_by(unsigned c);

#endif
