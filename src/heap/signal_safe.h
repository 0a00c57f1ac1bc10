/* SPDX-License-Identifier: MIT
 *
 * Blocks for signal handlers that interrupted the allocator's own slow path, where its locks may be held by the very
 * thread that asks.  A few small spans, each with a bump pointer moved by compare-and-swap; when all blocks of one are
 * free it starts over.  Handlers cannot add a span: when the last one is half full, the next slow path of any thread
 * does.  malloc in a signal handler is undefined behaviour that real programs rely on; this is for them.
 */
#ifndef SUTLER_HEAP_SIGNAL_SAFE_H
#define SUTLER_HEAP_SIGNAL_SAFE_H

#include <stdatomic.h>

#include "base/compiler.h"

/* Sets a span aside (address space; its pages stay untouched): the first at the start.  False without memory. */
bool signal_safe_add_area(void);

extern _Atomic bool signal_safe_is_low;
/* Sets another span aside if signal_safe_is_low.  For slow paths as they begin, and while they take long; holding no
 * lock but a pass. */
void signal_safe_add(void);
static inline void signal_safe_look(void)
{
    if (unlikely(atomic_load_explicit(&signal_safe_is_low, memory_order_relaxed)))
        signal_safe_add();
}

/* NULL for more bytes than a span has, and when all spans are used up. [signal] */
void *signal_safe_take(size_t size, size_t alignment);
/* False if `p` is not, or no longer, a block.  [signal] */
bool signal_safe_give(void *p);
/* Bytes of the block at `p`, an address in such a span; 0 if there is none. */
size_t signal_safe_bytes(const void *p);
/* True if it was one, and nothing has been put over it since. */
bool signal_safe_was_freed(const void *p);

#endif
