/* SPDX-License-Identifier: MIT
 *
 * Giving the pages of free spans back, in pieces.
 */
#ifndef SUTLER_HEAP_SPAN_PURGE_H
#define SUTLER_HEAP_SPAN_PURGE_H

#include "heap/pass.h"
#include "heap/span.h"

/* Spans may be taken, given and merged whenever span_lock is not held: what is remembered is a hint. */
struct span_walk {
    enum purge_what what;
    bool is_in_pieces;
    uint32_t at, end;
    uint32_t span;   /* the free span `at` is in, if there still is one that begins there */
    uint32_t strays; /* from this slice on nothing was met that tells what it is; SLICE_NONE: what was met last did */
    unsigned looks;  /* left to this hold of the lock */
    unsigned refused; /* slices in a row that were not taken */
    bool changed;    /* there is something for the next walk */
    size_t wasted_before;
};

/* In a pass, with no lock held. */
void span_walk_begin(struct span_walk *w, enum purge_what what, bool in_pieces);
bool span_walk_is_over(const struct span_walk *w);
/* Looks at some thousand descriptors, and purges a few MiB at most; returns the bytes. */
size_t span_walk_piece(struct span_walk *w);
void span_walk_end(struct span_walk *w);

#endif
