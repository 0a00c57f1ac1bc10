/* SPDX-License-Identifier: MIT
 *
 * Why: a backend without fork handlers (mimalloc, snmalloc, rpmalloc) has its locks in the snapshot as they are at that
 * moment, and a child waits for ever for one that was held.  On its own that is rare.  Under an engine it is not:
 * whoever would wait for the paused manager goes around it (around.h), that is into the backend, in the middle of the
 * fork, and stays there, because a page fault waits until the fork has copied the page tables.  So over such a backend
 * threads of the program wait outside until the fork is over; for a limited time, since the forking thread may be
 * waiting for a lock they hold.  Threads that were inside already are not waited for.
 */
#ifndef ENGINES_FORK_GUARD_H
#define ENGINES_FORK_GUARD_H

#include "backend.h"

struct backend fork_guard_over(struct backend found); /* gives back `found` if that has handlers of its own */

#endif
