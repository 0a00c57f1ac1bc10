/* SPDX-License-Identifier: MIT
 *
 * How much memory is left to the process: the least of what its control groups and the machine leave.  By the
 * manager; where there is none, by slow paths of the program.
 */
#ifndef SUTLER_MANAGER_HEADROOM_H
#define SUTLER_MANAGER_HEADROOM_H

#include "base/compiler.h"

/* Less than this left: nothing is prefaulted, and what is free is purged. */
#define MEMORY_HEADROOM_MIN (64ul << 20)

/* Bytes, as seen lately; SIZE_MAX if that is not known.  Each new manager thread asks at its start, too: until then
 * nothing freed may be kept as it is. */
size_t headroom_bytes(uint64_t now_ns);
/* The same: true if that is little.  Then memory is short (heap/demand.h) until somebody finds otherwise. */
bool headroom_is_short(uint64_t now_ns);
/* So many bytes more are about to be prefaulted: the cached value holds until a part of it is used. */
void headroom_use(size_t bytes);

/* By slow paths of the program when the allowance is low (heap/allowance.h), as their last work, with no lock held
 * and before another slow path may begin: without a manager, looks what is left; else has it look.  If memory is short,
 * purges as much as is taken. */
void headroom_in_passing(void);

/* In a child: whoever was looking is not there. */
void headroom_forget(void);

#endif
