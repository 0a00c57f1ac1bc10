/* SPDX-License-Identifier: MIT
 *
 * How much of what is left (headroom.h) the program may take before it is looked at again: the policy of the allowance
 * (heap/allowance.h).
 */
#ifndef SUTLER_MANAGER_ALLOW_H
#define SUTLER_MANAGER_ALLOW_H

#include "base/compiler.h"

/* So many bytes are left, SIZE_MAX if that is not known.  All may be taken if somebody looks in time, whatever the
 * program does.  By one thread at a time. */
void allow_part_of(size_t left, bool is_looked_at, uint64_t now_ns);

/* It could not be read: little is allowed, then it is tried again. */
void allow_until_read(void);

#endif
