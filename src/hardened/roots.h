/* SPDX-License-Identifier: MIT
 *
 * Where pointers are looked for: in all of the process's private memory that holds anything of its own.  That is
 * stacks, thread-local storage, globals, the heap, and whatever else the program has mapped.  Freed blocks hold zeros,
 * so the heap is read as it lies.  What threads had in their registers is on their stacks (os/stop.h).
 *
 * Not looked at: shared memory; memory that cannot be read; the sweep's own.  Only aligned words count.
 */
#ifndef SUTLER_HARDENED_ROOTS_H
#define SUTLER_HARDENED_ROOTS_H

#include "os/memory.h"

struct roots_read {
    size_t bytes;
    size_t outside_bytes; /* of those, not the heap's */
    bool is_whole; /* everything was read */
    bool is_cut;   /* it is not, because there was too much */
};

/* Marks (shadow.h) what all words point to.  In a pass.
 *   os_pages_all      of all memory
 *   os_pages_tracked  of what can be tracked and was written to since it was read so before; the program goes on, and
 *                     the pass lets others in: `goes_on` is asked after that
 *   os_pages_written  of all but what was read so and not written to since; threads are stopped, as with os_pages_all
 * The caller's stack from `below` downwards is passed over.  After about `most` bytes it is cut short: what was read of
 * tracked pages counts as read so the next time. */
struct roots_read roots_mark(enum os_pages which, const void *below, size_t most, bool (*goes_on)(void));

#endif
