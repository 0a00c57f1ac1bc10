/* SPDX-License-Identifier: MIT
 *
 * The second tier (SUTLER_SWEEP): a freed block is handed out again only after a sweep has found that no word of the
 * process's memory points into it.  (MineSweeper, Erdos et al., ASPLOS 2022.)
 *
 * What leaves the quarantine is kept (kept.h).  A sweep marks what all words of memory point to (roots.h, shadow.h) and
 * gives those kept blocks back that are not marked.  It is exact: the other threads are stopped for its end
 * (os/stop.h), so there is one state of memory, and a block nobody points to then nobody can point to later.  Most of
 * memory is read before, while the program runs, by the manager; what is written to meanwhile is known (os/memory.h)
 * and read again when threads are stopped.  Where that cannot be known, or the thread that frees sweeps itself, all is
 * read while they are.
 *
 * A sweep begins when so much has been freed since the last one as SOFT_PERCENT of what is in use: on the manager, or,
 * where there is none, on the thread that frees.  That thread waits, or sweeps, if the manager does not keep up.
 *
 * Where a thread cannot be stopped, or memory not be read, nothing is given back (SUTLER_SWEEP=on); or, before memory
 * grows without bounds, without looking (auto).  Where the system calls it takes may end the process there are no
 * sweeps, and kept blocks are given back as well.
 *
 * All but sweep_keep works in a pass, which the manager leaves for others while it reads: whoever sweeps then is
 * faster, and the manager gives up.  A fork leaves the kept blocks kept; a sweep that was not finished is forgotten in
 * the child.
 */
#ifndef SUTLER_HARDENED_SWEEP_H
#define SUTLER_HARDENED_SWEEP_H

#include <stdatomic.h>

#include "base/compiler.h"

/* Takes charge of a freed block of so many bytes, which is in nobody's hands: one of a superblock, all zeros; or a
 * large one, whose pages are guarded.  Holding no lock. */
void sweep_keep(void *p, size_t bytes);
void sweep_keep_large(void *p, size_t bytes);

/* A large block was freed and is in quarantine, from where it comes to sweep_keep_large: it is live no more. */
void sweep_note_freed(size_t bytes);

/* Before memory is refused, and when it is to be given back: sweeps at once, what was just freed included.  Holding no
 * lock. */
void sweep_now(void);

/* Before memory is refused where no sweep could be made: gives back without looking, with SUTLER_SWEEP=auto, or where
 * there can be no sweeps at all.  True if a block was given back.  Holding no lock. */
bool sweep_give_in(void);

/* In the child of a fork. */
void sweep_recover(void);

#endif
