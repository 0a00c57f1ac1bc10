/* SPDX-License-Identifier: MIT
 *
 * What the heap and the manager tell each other.
 *
 * Demand is work for the manager that should not wait for its clock: the prefault pool has fallen below half its
 * target, or freed mappings wait to be unmapped.  The heap raises it, one of the program's slow paths wakes the
 * manager, and the manager lowers it and looks.
 */
#ifndef SUTLER_HEAP_DEMAND_H
#define SUTLER_HEAP_DEMAND_H

#include <stdatomic.h>

#include "base/compiler.h"

enum heap_demand { demand_none, demand_raised, demand_delivered };
extern _Atomic uint32_t heap_demand;

/* Somebody waits for the manager to leave: a purge on its clock ends at the next batch. */
extern _Atomic bool manager_stop_requested;

/* There is a manager, which unmaps deferred mappings (mapping_unmap_deferred in large.h) when there is demand. */
extern _Atomic bool unmap_is_async;

/* There is no manager, nor will there be soon: the program prefaults for itself.  False while that is not known. */
extern _Atomic bool manager_is_missing;

/* The manager has seen that memory is short: the heap looks harder for free blocks before it takes fresh memory. */
extern _Atomic bool memory_is_short;

static inline bool heap_is_unmanaged(void)
{
    return atomic_load_explicit(&manager_is_missing, memory_order_relaxed);
}

static inline bool demand_is_none(void)
{
    return atomic_load_explicit(&heap_demand, memory_order_relaxed) == demand_none;
}

static inline void demand_raise(void)
{
    if (demand_is_none())
        atomic_store_explicit(&heap_demand, demand_raised, memory_order_relaxed);
}

#endif
