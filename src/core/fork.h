/* SPDX-License-Identifier: MIT
 *
 * What the rest of the library asks of fork.c.
 */
#ifndef SUTLER_CORE_FORK_H
#define SUTLER_CORE_FORK_H

#include <stdatomic.h>

#include "base/compiler.h"

/* Registers the fork handlers; libc must be up. */
void fork_register(void);
/* Sets up what tells a child made by _Fork or clone, without handlers, that it is one. */
bool fork_watch(void);
/* Called by every slow path: in such a child, makes the heap usable. */
void fork_notice(void);
/* Whether there is nothing to notice: what no lock guards is as good as any other way. */
enum fork_mark { fork_new = 0, fork_known, fork_recovering };
extern _Atomic uint32_t *fork_mark;
static inline bool fork_is_noticed(void)
{
    return likely(atomic_load_explicit(fork_mark, memory_order_acquire) == fork_known);
}

#endif
