/* SPDX-License-Identifier: MIT
 *
 * What the program may yet take of the memory that is left to it.
 *
 * The system kills a process that goes over a memory limit; it does not ask for memory back first.  So pages that the
 * program is about to touch for the first time, or again after they were purged, are counted against an allowance.  Who
 * reads the limits (manager/headroom.h) sets it to a part of what is left.  When it is used up they are read again, and
 * if memory is short then, what is taken has to be purged before (shortage.h).
 */
#ifndef SUTLER_HEAP_ALLOWANCE_H
#define SUTLER_HEAP_ALLOWANCE_H

#include <stdatomic.h>

#include "base/compiler.h"

/* As much as nobody takes: no limit is known. */
#define ALLOWANCE_UNLIMITED (INT64_MAX / 2)

extern _Atomic int64_t allowance_left;

static inline bool allowance_is_used_up(void)
{
    return atomic_load_explicit(&allowance_left, memory_order_relaxed) <= 0;
}

/* So many bytes of pages will be touched that the system has to find; or it has got so many back. */
void allowance_use(size_t bytes);
void allowance_return(size_t bytes);

/* Less than nothing: so much has to be purged before anything more is taken. */
void allowance_set(int64_t bytes);

#endif
