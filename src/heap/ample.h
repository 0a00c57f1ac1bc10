/* SPDX-License-Identifier: MIT
 *
 * How much freed memory may be kept as it is.  Kept memory counts against limits, and the system kills a process that
 * exceeds one without asking for memory back.  So more than a small bound is kept only where the manager has seen
 * lately that no control group and no address space limit is set, and that four times as much is left in the machine.
 * What is kept is purged on the manager's clock.
 */
#ifndef SUTLER_HEAP_AMPLE_H
#define SUTLER_HEAP_AMPLE_H

#include "base/compiler.h"

/* By the manager: until `until_ns` so many bytes of free spans and freed mappings may be kept, for no limit is near. */
void ample_allow(size_t bytes, uint64_t until_ns);

/* True if so many bytes in all may be kept. */
bool ample_for(size_t bytes);

#endif
