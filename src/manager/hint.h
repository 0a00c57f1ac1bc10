/* SPDX-License-Identifier: MIT
 *
 * How slow paths tell the manager that there is work.
 */
#ifndef SUTLER_MANAGER_HINT_H
#define SUTLER_MANAGER_HINT_H

#include "heap/demand.h"
#include "heap/large.h"
#include "manager/manager.h"

/* The part of manager_hint that is not a comparison or two. */
void manager_hint_slow(enum manager_state state);

/* Every slow path calls it, holding no lock: starts or wakes the manager when that is due. */
static inline void manager_hint(void)
{
    enum manager_state state = manager_state();
    bool is_due = state != manager_busy ||
                  atomic_load_explicit(&heap_demand, memory_order_relaxed) == demand_raised;
    if (unlikely(is_due && state != manager_forbidden))
        manager_hint_slow(state);
}

/* The next slow path asks the system how much is resident (start.c). */
void manager_start_look(void);

/* Called, holding no lock, before a mapping of this size is freed: starts the manager for one that would otherwise be
 * unmapped by free. */
static inline void manager_hint_unmapping(size_t bytes)
{
    if (bytes > MAPPING_CACHE_BYTES && bytes <= MAPPING_DEFERRED_BYTES &&
        manager_state() == manager_absent) {
        manager_start_look();
        manager_hint_slow(manager_absent);
    }
}

#endif
