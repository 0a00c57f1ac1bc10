/* SPDX-License-Identifier: MIT */
#include "heap/demand.h"

_Atomic uint32_t heap_demand = demand_none;
_Atomic bool manager_is_called_off;
_Atomic bool mapping_is_helped;
_Atomic bool manager_is_missing;
_Atomic bool memory_is_short;
