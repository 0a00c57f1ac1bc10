/* SPDX-License-Identifier: MIT
 *
 * Memory for the allocator's own structures: zeroed, aligned to 4 KiB, never given back.
 */
#ifndef SUTLER_HEAP_META_H
#define SUTLER_HEAP_META_H

#include "base/compiler.h"

/* NULL without memory.  Not thread-safe: callers hold the binding lock. */
void *meta_take(size_t bytes);

/* In a child whose parent held the lock when it was made: begins a new chunk. */
void meta_recover(void);

#endif
