/* SPDX-License-Identifier: MIT
 *
 * Blocks for signal handlers that interrupted the allocator's own slow path, where its locks may be held by the very
 * thread that asks.  A bump pointer over a small span, moved by compare-and-swap; when all its blocks are free it
 * starts over.  malloc in a signal handler is undefined behaviour that real programs rely on; this is for them.
 */
#ifndef SUTLER_HEAP_EMERGENCY_H
#define SUTLER_HEAP_EMERGENCY_H

#include "base/compiler.h"

/* Sets the span aside (address space; its pages stay untouched).  False without memory. */
bool emergency_start(void);

/* NULL when the span is used up.  [signal] */
void *emergency_take(size_t size, size_t alignment);
/* False if `p` is not, or no longer, a block.  [signal] */
bool emergency_give(void *p);
/* Of a block; 0 if `p`, which lies in the span, is none. */
size_t emergency_bytes(const void *p);
/* True if it was one, and nothing has been put over it since. */
bool emergency_was_freed(const void *p);

#endif
