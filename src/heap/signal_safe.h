/* SPDX-License-Identifier: MIT
 *
 * Blocks for signal handlers that interrupted the allocator's own slow path, where its locks may be held by the very
 * thread that asks.  malloc in a signal handler is undefined behaviour that real programs rely on; this is for them.
 *
 * A small allocator without locks, in the addresses below the region: it carves cells of a power of two from a chunk,
 * and has a stack of freed cells for each size.  Whoever finds nothing maps the next chunk, a handler too, for mmap is
 * as good a system call there as any.  Which of two threads has the chunk is for the system to say.  So handlers get
 * blocks while there is memory, whether or not the thread they interrupted ever gets on
 * (docs/decisions/0039-handlers-get-on-by-themselves.md).
 */
#ifndef SUTLER_HEAP_SIGNAL_SAFE_H
#define SUTLER_HEAP_SIGNAL_SAFE_H

#include "base/compiler.h"

/* Maps a first chunk, whose pages stay untouched: handlers may need it when a limit has been reached.  After
 * region_start. */
void signal_safe_start(void);

/* A block of `size` bytes, whatever it held before, aligned to `alignment`, a power of two.  NULL without memory, and
 * for more than 2 GiB or 64 pages of alignment.  [signal] */
void *signal_safe_take(size_t size, size_t alignment);
/* False if `p`, an address in such a chunk, is not, or no longer, a block.  [signal] */
bool signal_safe_give(void *p);

/* True for addresses in a chunk. [signal] */
bool signal_safe_contains(const void *p);
/* Bytes of the block at `p`, an address in a chunk; 0 if there is none. [signal] */
size_t signal_safe_bytes(const void *p);
/* True if it was one, and nothing has been put over it since. [signal] */
bool signal_safe_was_freed(const void *p);

/* Bytes of all chunks. */
size_t signal_safe_mapped_bytes(void);

#endif
