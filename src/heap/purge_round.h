/* SPDX-License-Identifier: MIT
 *
 * A round is one purge of everything: what waits in outboxes, used pages of superblocks where nothing is carved, whole
 * free pages of superblocks, free spans, cached mappings.  It is made in one go (purge.h), or in pieces, each of
 * which looks at so many descriptors and purges so much as takes some hundred microseconds.
 */
#ifndef SUTLER_HEAP_PURGE_ROUND_H
#define SUTLER_HEAP_PURGE_ROUND_H

#include "heap/region.h"
#include "heap/span_purge.h"

enum round_step { round_heaps, round_stale, round_superblocks, round_spans, round_mappings, round_over };

struct purge_round {
    enum purge_what what;
    bool is_in_pieces;
    enum round_step step;
    uint32_t at;         /* the heap, or the slice, that is next in this step */
    uint32_t looks_left; /* of this piece; in one go they are not counted */
    unsigned idle_heaps;
    size_t most; /* of free blocks in superblocks may be looked for */
    size_t holes_before, holes_found;
    struct span_walk spans;
    bool changed; /* something is likely to be found by the next round */
    size_t bytes; /* purged */
};

void round_begin(struct purge_round *r, enum purge_what what, bool in_pieces);
/* The next piece; in one go, all of the step it has come to.  In a pass, with no lock held. */
void round_go_on(struct purge_round *r);
static inline bool round_is_over(const struct purge_round *r)
{
    return r->step == round_over;
}

/* ---- for the steps ---- */

/* False at the end of all slices or of this piece, or if the purge is to stop; else `at` is a slice to look at. */
static inline bool round_looks_on(struct purge_round *r)
{
    if (r->looks_left == 0 || !pass_goes_on(r->what))
        return false;
    r->looks_left -= r->is_in_pieces;
    r->at = region_slice_from(r->at);
    return r->at != SLICE_END;
}

/* purge.c: the superblocks from `at` on; the holes when all have been seen. */
void purge_superblocks(struct purge_round *r);
void purge_note_holes(const struct purge_round *r);
size_t purge_holes_bytes(void);

#endif
