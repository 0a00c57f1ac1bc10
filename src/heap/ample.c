/* SPDX-License-Identifier: MIT */
#include "heap/ample.h"

#include <stdatomic.h>

#include "heap/demand.h"
#include "os/os.h"

/* Nothing may be kept until a manager says so. */
static _Atomic size_t ample_bytes;
static _Atomic uint64_t ample_until_ns;
static _Atomic size_t ample_taken_most;
static _Atomic bool is_out_of_date; /* somebody found that it is */

void ample_allow(size_t bytes, uint64_t until_ns, size_t taken_most)
{
    atomic_store(&is_out_of_date, false);
    atomic_store(&ample_taken_most, taken_most);
    atomic_store(&ample_until_ns, until_ns);
    atomic_store(&ample_bytes, bytes);
}

/* If the manager lives, what it allowed it allowed to this process.  Where that is out of date it has to look again. */
bool ample_for(size_t kept, size_t in_use)
{
    if (!atomic_load(&unmap_is_async) || kept > atomic_load(&ample_bytes))
        return false;
    bool holds = kept + in_use <= atomic_load(&ample_taken_most) && os_now_ns() < atomic_load(&ample_until_ns);
    if (!holds) {
        atomic_store(&is_out_of_date, true);
        demand_raise();
    }
    return holds;
}

bool ample_is_out_of_date(void)
{
    return atomic_load_explicit(&is_out_of_date, memory_order_relaxed);
}
