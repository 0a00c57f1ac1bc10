/* SPDX-License-Identifier: MIT
 *
 * What the hardened library decides once, at the start: which mitigations are on, its secrets, where the states are.
 * It all lies on a page of its own that is made read-only before the first block is handed out.  (In the plain library
 * there is none of it: this layer is compiled with SUTLER_HARDENED only.)
 */
#ifndef SUTLER_MARKS_MARKS_H
#define SUTLER_MARKS_MARKS_H

#include "marks/layout.h"
#include "base/compiler.h"

enum mitigation {
#define MITIGATION(name, on, cost, stops, test) mitigation_##name,
#include "marks/mitigations.def"
#undef MITIGATION
    mitigation_count
};

/* SUTLER_SWEEP: whether freed blocks wait for a sweep (hardened/sweep.h). */
enum sweep { sweep_off, sweep_on, sweep_auto };

#define MARKS_BYTES 4096
#define FACTOR  0x9e3779b97f4a7c15ull
#define INVERSE 0xf1de83e19937733dull

struct marks {
    uint64_t link_key;   /* what links are encoded with (heap/next.h); the first, for the assembly, */
    uint64_t order_key;  /* what whatever is shuffled is shuffled by; the second */
    uint64_t factor, inverse; /* whose product is 1; for the assembly, too */
    uint64_t canary_key; /* what canaries are made of (canary.h) */
    uintptr_t states;    /* of address 0: the state of p is at states + p / 16 (state.h) */
    const volatile char *single_threaded; /* not 0 while libc knows that there is one thread */
    bool usual; /* the rows that the quick paths have are on, the others and SUTLER_TRACE are off */
    size_t pad;          /* bytes a block has more than was asked for, at least: for the canary */
    size_t guard_bytes;  /* at the end of a large block */
    uint32_t trace;      /* frees to remember; 0: none */
    bool report_long;
    uint8_t sweep; /* enum sweep */
    bool on[mitigation_count];
};

extern union marks_page {
    struct marks marks;
    char page[MARKS_BYTES];
} marks_page;
_Static_assert(offsetof(struct marks, link_key) == MARKS_LINK_KEY, "shared with assembly");
_Static_assert(offsetof(struct marks, factor) == MARKS_FACTOR, "shared with assembly");
_Static_assert(offsetof(struct marks, inverse) == MARKS_INVERSE, "shared with assembly");
_Static_assert(offsetof(struct marks, order_key) == MARKS_ORDER_KEY, "shared with assembly");
#define marks (*(const struct marks *)&marks_page.marks)

static inline bool mitigated(enum mitigation m)
{
    return marks.on[m];
}

/* Reads SUTLER_HARDEN and what else concerns the hardened library, and draws the secrets.  Once, before the region. */
void marks_start(void);
/* The states lie there.  Once. */
void marks_place_states(uintptr_t of_address_0);
/* From here on nothing of it changes. */
void marks_seal(void);

#endif
