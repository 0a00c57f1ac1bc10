/* SPDX-License-Identifier: MIT
 *
 * The constants every fast path reads, together in one cache line.  All zero is a valid state: a limit of zero sends
 * every call to the slow path, which is how the library works before it is initialised and in lock mode.
 * Offsets are shared with the assembly.
 */
#ifndef SUTLER_RCS_HOT_H
#define SUTLER_RCS_HOT_H

#define HOT_SMALL_LIMIT 0
#define HOT_REGION_BASE 8
#define HOT_REGION_BYTES 16
#define HOT_DESCRIPTORS 24
#define HOT_RSEQ 32
#define HOT_CID 40
#define HOT_MEDIUM_LIMIT 48

/* Fields of the kernel's struct rseq. */
#define RSEQ_CPU_ID 4
#define RSEQ_CS 8
#define RSEQ_MM_CID 24
#if defined(__aarch64__)
#define RSEQ_SIGNATURE 0xd428bc00
#else
#define RSEQ_SIGNATURE 0x53053053
#endif

#ifndef __ASSEMBLER__
#include "base/compiler.h"

struct hot {
    size_t small_limit;         /* malloc sizes below it are served from the small table; 0: none */
    uintptr_t region_base;      /* first address blocks come from */
    size_t region_bytes;        /* free's fast path looks at addresses below base + this; 0: none */
    char *descriptors;          /* one per slice from region_base on (heap/slice.h) */
    ptrdiff_t rseq;             /* of the thread's struct rseq, from the thread pointer */
    ptrdiff_t cid;              /* of the field that holds the cid, from the thread pointer */
    size_t medium_limit;        /* from small_limit on, sizes below this one from the medium table; 0: none */
    size_t flat_bytes;          /* what region_bytes is while the fast paths are open: the region up to its first gap */
} ALIGN_LINE;

extern struct hot hot;

_Static_assert(offsetof(struct hot, small_limit) == HOT_SMALL_LIMIT, "shared with assembly");
_Static_assert(offsetof(struct hot, region_base) == HOT_REGION_BASE, "shared with assembly");
_Static_assert(offsetof(struct hot, region_bytes) == HOT_REGION_BYTES, "shared with assembly");
_Static_assert(offsetof(struct hot, descriptors) == HOT_DESCRIPTORS, "shared with assembly");
_Static_assert(offsetof(struct hot, rseq) == HOT_RSEQ, "shared with assembly");
_Static_assert(offsetof(struct hot, cid) == HOT_CID, "shared with assembly");
_Static_assert(offsetof(struct hot, medium_limit) == HOT_MEDIUM_LIMIT, "shared with assembly");
#endif

#endif
