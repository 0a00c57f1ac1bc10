/* SPDX-License-Identifier: MIT
 *
 * Stale pages: a superblock made from slices that were in use before has pages where nothing is carved yet.  Of larger
 * blocks a superblock is some MiB, and a program that holds but one or two blocks of a class carves no more of it: a
 * process of 256 MiB kept 50 MiB so.
 *
 * They are purged under the heap's lock, a little at a time; the superblock stays online, for taking away the one
 * that malloc carves from would make malloc take another such.
 */
#ifndef SUTLER_HEAP_STALE_H
#define SUTLER_HEAP_STALE_H

#include "heap/purge.h"
#include "heap/superblock.h"

/* Whether this is such a superblock.  A quick look, which may be wrong for a moment. */
static inline bool is_stale(const struct superblock *s)
{
    return s->slice.is_large && (s->dirty & s->uncarved) != 0;
}

/* Purges what is stale in `s`, returns the bytes, if it was so at the last pass or everything is to go; else marks it
 * for the next.  *changed is set if there is something for the next.  In a pass, with no lock held. */
size_t stale_purge(struct superblock *s, enum purge_what what, bool *changed);

#endif
