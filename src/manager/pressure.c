/* SPDX-License-Identifier: MIT
 *
 * pressure: when memory is short, everything that can be given back is given back at once, without waiting whether the
 * program takes it again: first of all the reserve; and from then on the heap looks harder for free blocks before it
 * takes fresh memory.  Short is: little is left under a control group's limit or in the machine, or tasks wait for
 * memory a tenth of their time (pressure stall information).
 *
 * A purge of everything disturbs the program; where it yields little the next one waits longer.
 */
#include "base/bits.h"
#include "heap/demand.h"
#include "heap/purge.h"
#include "manager/jobs.h"
#include "os/os.h"

#define WAIT_MIN 2u  /* periods from one purge to the next */
#define WAIT_MAX 64u
#define YIELD_MIN (4ul << 20)

static unsigned wait, periods_left;

static bool is_short(void)
{
    const unsigned stalled_percent = 10;
    bool is_near = os_memory_headroom() < MEMORY_HEADROOM_MIN || os_memory_stall_percent() >= stalled_percent;
    atomic_store(&memory_is_short, is_near);
    return is_near;
}

bool pressure_run(uint64_t budget_ns)
{
    (void)budget_ns; /* as reclaim */
    if (periods_left > 0) {
        periods_left--;
        return true;
    }
    if (!is_short())
        return false;
    size_t bytes = heap_purge(purge_everything, NULL);
    wait = bytes >= YIELD_MIN || wait == 0 ? WAIT_MIN : (unsigned)min_size(wait * 2, WAIT_MAX);
    periods_left = wait;
    return bytes >= YIELD_MIN;
}
