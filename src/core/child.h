/* SPDX-License-Identifier: MIT
 *
 * A forked child: what tells a process that it is one, whoever made it, and what makes its heap whole.
 */
#ifndef SUTLER_CORE_CHILD_H
#define SUTLER_CORE_CHILD_H

#include <stdatomic.h>

#include "base/compiler.h"

/* Sets up what tells a child made by _Fork or clone, without handlers, that it is one.  False without memory. */
bool child_watch(void);
enum child_mark { child_new = 0, child_known, child_recovering };
extern _Atomic uint32_t *child_mark;
/* True if there is nothing to notice: for ways that take no lock, and so need not wait for a recovery under way. */
static inline bool child_is_noticed(void)
{
    return likely(atomic_load_explicit(child_mark, memory_order_acquire) == child_known);
}

/* Called by every slow path of such a child that has not been noticed: makes the heap usable. */
void child_recover(void);
/* The same for who is in no slow path; a signal handler that has interrupted one leaves it to that (slow.c). */
void child_notice_outside(void);
/* By a child, in a slow path: forgets the manager of its parent and the vforks of other threads, which it has not; its
 * first malloc is to begin with memory of its own (heap/inherited.h). */
void child_begin_anew(void);
/* How often this process and its parents have recovered, as children. */
uint8_t child_recoveries(void);

/* Registers the handlers of fork (fork.c); libc must be up. */
void fork_register(void);

#endif
