/* SPDX-License-Identifier: MIT
 *
 * What sections read and count.
 */
#include "rcs/hot.h"

#include "rcs/rcs.h"

struct heap *heap_of_cid[SLOT_MAX + 1];
struct hot hot;
uint64_t rcs_restarts;
