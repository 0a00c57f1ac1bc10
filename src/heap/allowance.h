/* SPDX-License-Identifier: MIT
 *
 * What the program may yet take of the memory that is left to it.
 *
 * The system kills a process that goes over a memory limit; it does not ask for memory back first.  So pages that the
 * program is about to touch for the first time, or again after they were purged, are counted against an allowance.  Who
 * reads the limits (manager/headroom.h) sets it to a part of what is left.  When half of it is used they are to be read
 * again.  If memory is short, and all of it is used, what is taken has to be purged before (shortage.h).
 */
#ifndef SUTLER_HEAP_ALLOWANCE_H
#define SUTLER_HEAP_ALLOWANCE_H

#include <stdatomic.h>

#include "base/compiler.h"

/* As much as nobody takes: no limit is known, and nothing is counted. */
#define ALLOWANCE_UNLIMITED (INT64_MAX / 2)

extern _Atomic int64_t allowance_left, allowance_mark;

/* Half of it is used, which nobody has noted yet; or all of it. */
static inline bool allowance_is_low(void)
{
    return atomic_load_explicit(&allowance_left, memory_order_relaxed) <=
           atomic_load_explicit(&allowance_mark, memory_order_relaxed);
}

static inline bool allowance_is_used_up(void)
{
    return atomic_load_explicit(&allowance_left, memory_order_relaxed) <= 0;
}

/* That half of it is used. */
void allowance_note_low(void);

/* So many bytes of pages will be touched that the system has to find; or it has got so many back.  No more come back
 * than were allowed: what was taken before that may never have been touched. */
void allowance_use(size_t bytes);
void allowance_return(size_t bytes);
/* The same of a large block: it may take the program a while to touch it.  And how much that was since the last
 * call. */
void allowance_promise(size_t bytes);
size_t allowance_take_promised(void);

/* Less than nothing: so much has to be purged before anything more is taken. */
void allowance_set(int64_t bytes);
/* Nobody has looked, or nobody will look in time any more. */
void allowance_reset(void);

#endif
