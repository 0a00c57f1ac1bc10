/* SPDX-License-Identifier: MIT
 *
 * The sweep's shadow: a bit for each 16 bytes of the region.  A set bit says that a word was found which points there.
 * And the kept blocks outside the region, mappings of their own, each with such a mark.
 *
 * All by whoever sweeps, in a pass; but the manager marks as well, while it helps (look.h), in bits of its own.
 */
#ifndef SUTLER_HARDENED_SHADOW_H
#define SUTLER_HARDENED_SHADOW_H

#include "heap/region.h"
#include "marks/state.h"
#include "os/memory.h"

/* Of a cache line, in which memory is read. */
#define LINE_BYTES 64u

enum marker { marker_sweep, marker_manager, MARKERS };

extern struct shadow {
    uint64_t *words[MARKERS];
    uintptr_t base;
    size_t bytes; /* of the region, covered from its base on */
    uintptr_t outside_start;
    size_t outside_bytes; /* the mappings lie in this range; 0: there are none */
} shadow;

/* Covers the region as it is now, or as much of it as there is memory for: blocks beyond count as pointed to.  All bits
 * are clear.  False if there is no memory at all. */
bool shadow_prepare(void);
/* Clears all, and gives the memory back. */
void shadow_wipe(void);

/* A mapping is looked for, too.  Those beyond a number of them count as pointed to. */
void shadow_add_outside(uintptr_t start, size_t bytes);

/* Marks whatever these words point to. */
void shadow_mark_words(enum marker by, const uint64_t *word, size_t count);

/* Whether no word was found that points into the block. */
bool shadow_is_clear(const void *p, size_t bytes);

#endif
