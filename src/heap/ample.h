/* SPDX-License-Identifier: MIT
 *
 * How much freed memory may be kept as it is.  Kept memory counts against limits, and the system kills a process that
 * exceeds one without asking for memory back.  So more than a small bound is kept only where the manager has seen
 * lately that no limit is set on address space, and that many times as much is left: in the machine, and under every
 * control group's limit.  What is kept is purged on the manager's clock.
 */
#ifndef SUTLER_HEAP_AMPLE_H
#define SUTLER_HEAP_AMPLE_H

#include "base/compiler.h"

/* By the manager: until `until_ns`, and while what is in use and what is kept come to no more than `taken_most` bytes,
 * so many bytes of free spans and freed mappings may be kept, for no limit is near. */
void ample_allow(size_t bytes, uint64_t until_ns, size_t taken_most);

/* True if somebody asked in vain since: it is time to look again. */
bool ample_is_out_of_date(void);

/* True if so many bytes in all may be kept, while so many are in use.  Raises demand if nobody has looked lately. */
bool ample_for(size_t kept, size_t in_use);

#endif
