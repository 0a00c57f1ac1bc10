/* SPDX-License-Identifier: MIT
 *
 * How much freed memory may be kept as it is.  It counts against a limit, and nobody asks before the system kills: so
 * more than a small bound is kept only where the manager has seen lately that no control group has a limit, that
 * address space has none either (the region gives none back), and that four times as much is left in the machine.  What
 * is kept so goes back on the manager's clock.
 */
#ifndef SUTLER_HEAP_AMPLE_H
#define SUTLER_HEAP_AMPLE_H

#include "base/compiler.h"

/* By the manager: until then no limit is near, and so many bytes of free spans and freed mappings may be kept. */
void ample_allow(size_t bytes, uint64_t until_ns);

/* Whether so many bytes may be kept, all told. */
bool ample_for(size_t bytes);

#endif
