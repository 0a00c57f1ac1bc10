/* SPDX-License-Identifier: MIT
 *
 * Random order of blocks, in the hardened library only.
 */
#ifndef SUTLER_HEAP_SHUFFLE_H
#define SUTLER_HEAP_SHUFFLE_H

#include "base/compiler.h"

/* The same blocks in random order, if that is asked for (mitigation_order); nobody else has the list. */
uint64_t freelist_shuffle(uint64_t list);

#endif
