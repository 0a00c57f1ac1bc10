/* SPDX-License-Identifier: MIT
 *
 * What becomes of kept blocks (kept.h) when a sweep is done: those that nothing points to go back to the plain library,
 * after a look at whether anybody has written to them.
 *
 * All in a pass, but the cost of a block.
 */
#ifndef SUTLER_HARDENED_RESOLVE_H
#define SUTLER_HARDENED_RESOLVE_H

#include <stdatomic.h>

#include "base/compiler.h"

/* Blocks given back so far: because nothing points to them, and without looking.  Written in a pass, read by
 * anybody. */
extern struct resolved {
    _Atomic uint64_t blocks, unseen_blocks;
} resolved;

/* Both. */
static inline uint64_t resolve_count(void)
{
    return atomic_load(&resolved.blocks) + atomic_load(&resolved.unseen_blocks);
}

/* A large block was freed: its pages are gone, and its addresses not. */
void resolve_note_freed(size_t bytes);
/* It is about to be kept.  Returns what that costs, in bytes. */
size_t resolve_note_kept(size_t bytes);
/* What large blocks have between these two; and after them, beyond what they cost. */
size_t resolve_pageless_bytes(void);

/* Before memory is read: has the shadow look for a kept block, if it is a mapping of its own. */
void resolve_expect(void *p);

/* For kept_resolve: give a block back, if the marks of the last sweep say that nothing points to it, or in any case.
 * What it cost, if it is gone; else 0, and its whole pages are given back to the system. */
size_t resolve_seen(void *p, bool is_first);
size_t resolve_unseen(void *p, bool is_first);

#endif
