/* SPDX-License-Identifier: MIT */
#include "heap/demand.h"

_Atomic uint32_t heap_demand = demand_none;
_Atomic bool manager_stop_requested;
_Atomic bool unmap_is_async;
_Atomic bool manager_is_missing;
_Atomic bool memory_is_short;
