/* SPDX-License-Identifier: MIT
 *
 * The child of a vfork shares its parent's memory, thread-local variables included, while the parent's thread stands
 * still.  The system does not restart its sections, and its cid is the one its parent had, which may be another
 * thread's by now: it must not run any.  So vfork is ours (vfork.S): for as long as such a child lives the fast paths
 * are closed, for all threads, and what allocates in the child takes locks (rcs_suspended).
 *
 * libc's clone is ours as well (vfork.c), for CLONE_VM and CLONE_VFORK together are a vfork; other children that share
 * memory, without being threads, are not seen.
 */
#ifndef SUTLER_CORE_VFORK_H
#define SUTLER_CORE_VFORK_H

#include "base/compiler.h"

/* Called by the assembly in the parent: before the system call; and after it, with its result.  The second returns what
 * vfork returns, and sets errno.  The first returns false in a signal handler that has interrupted a slow path, whose
 * locks its thread may hold: there vfork is a fork, the third. */
bool vfork_begins(void);
int vfork_returns(long result);
int vfork_by_fork(void);

#endif
