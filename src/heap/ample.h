/* SPDX-License-Identifier: MIT
 *
 * How much freed memory may be kept as it is.  It counts against limits, and the system kills without asking for it
 * back.  So more than a small bound is kept only where the manager has seen lately that no control group and no address
 * space limit is set, and that four times as much is left in the machine.  The manager's clock purges what is kept.
 */
#ifndef SUTLER_HEAP_AMPLE_H
#define SUTLER_HEAP_AMPLE_H

#include "base/compiler.h"

/* By the manager: until then no limit is near, and so many bytes of free spans and freed mappings may be kept. */
void ample_allow(size_t bytes, uint64_t until_ns);

/* True if so many bytes in all may be kept. */
bool ample_for(size_t bytes);

#endif
