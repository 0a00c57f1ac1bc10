/* SPDX-License-Identifier: MIT
 *
 * calloc of a large block that was used before.  Who had it may have touched little of it, and who gets it may: of a
 * table that is filled here and there, most is neither read nor written.  So where three quarters of its pages are not
 * there, the others are given back to the system instead of all of it being cleared, which would bring it in.
 */
#ifndef SUTLER_HEAP_CLEAR_H
#define SUTLER_HEAP_CLEAR_H

#include "base/compiler.h"

/* The block, of which these bytes read as zero now; what is beyond them stays.  Any thread; the caller holds the
 * block. */
void *large_clear(void *block, size_t bytes);

#endif
