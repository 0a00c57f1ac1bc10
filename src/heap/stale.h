/* SPDX-License-Identifier: MIT
 *
 * Stale pages of larger blocks: a superblock made from slices that were in use before has pages where nothing is carved
 * yet.  (Those of smaller blocks, which are soon filled, are purged with what is free: purge.c.)  Of larger
 * blocks a superblock is some MiB, and a program that holds but one or two blocks of a class carves no more of it: a
 * process of 256 MiB kept 50 MiB in this way.
 *
 * They are purged under the heap's lock, a little at a time, and the superblock stays online: if malloc lost the one it
 * carves from, it would take another one like it.
 */
#ifndef SUTLER_HEAP_STALE_H
#define SUTLER_HEAP_STALE_H

#include "heap/purge.h"
#include "heap/superblock.h"

/* True if `s` has stale pages; may be wrong for a moment. */
static inline bool is_stale(const struct superblock *s)
{
    return s->slice.is_large && superblock_stale_units(s) != 0;
}

/* Purges the stale pages of `s`, if by force or if they were stale at the last pass, and returns their bytes.
 * Otherwise marks it for the next pass and sets *changed.  In a pass, with no lock held. */
size_t stale_purge(struct superblock *s, enum purge_what what, bool *changed);

#endif
