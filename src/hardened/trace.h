/* SPDX-License-Identifier: MIT
 *
 * SUTLER_TRACE=N: who made the last N frees, for reports.
 */
#ifndef SUTLER_HARDENED_TRACE_H
#define SUTLER_HARDENED_TRACE_H

#include "base/compiler.h"

struct freed {
    const void *block; /* NULL: no entry */
    size_t size;
    const void *caller;
    uint32_t thread;
    uint64_t number; /* the first free is 1 */
};

/* Notes the free of a block, any thread. */
void trace_free(const void *p, size_t size, const void *caller);
/* The last free of the block at `p` among those that are remembered; and how many frees there were. */
struct freed trace_find(const void *p);
uint64_t trace_total(void);

#endif
