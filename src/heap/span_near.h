/* SPDX-License-Identifier: MIT
 *
 * Where a cid's large blocks lay last.  Threads that each take a buffer, work in it and free it, of another length
 * every time, would exchange their memory by way of the free spans, and each find in its processor's cache what the
 * other needs.  So once a second cid has given a large block back, each is served first where its last one lay, if
 * there is room; unless a free span of half the length would do: programs that hold many blocks need the best fit.
 * (docs/decisions/0035-kept-until-another-length-is-wanted.md)
 */
#ifndef SUTLER_HEAP_SPAN_NEAR_H
#define SUTLER_HEAP_SPAN_NEAR_H

#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

/* The running cid gave back a large block that began at slice `first`; it is a part of the free span `span` now. */
void span_near_note(uint32_t first, uint32_t span);

/* Finds so many slices in the span where the running cid's last block lay, as near to that as there is room; false if
 * it is not free any more, too short, or twice as long as another that would do.  They may hold anything.  Under
 * span_lock. */
bool span_near_find(size_t slices, uint32_t *span, uint32_t *first);

#endif
