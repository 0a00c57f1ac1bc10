/* SPDX-License-Identifier: MIT
 *
 * pressure: when memory is short, purges everything that is free, the prefault pool included, without waiting whether
 * the program takes it again.  From then on the heap looks harder for free blocks before it takes fresh memory.  Memory
 * is short if little is left under a control group's limit or in the machine, or if not much is left and tasks wait for
 * memory a tenth of their time (pressure stall information, read near a limit only).
 *
 * A purge of everything disturbs the program; where it yields little the next one waits longer, and while the program
 * purges for itself (heap/shortage.h) it would only be in the way.
 */
#include "base/bits.h"
#include "heap/demand.h"
#include "heap/purge.h"
#include "heap/shortage.h"
#include "manager/headroom.h"
#include "manager/jobs.h"
#include "os/os.h"

#define WAIT_MIN 2u  /* periods from one purge to the next */
#define WAIT_MAX 64u
#define YIELD_MIN (4ul << 20)
#define NEAR_BYTES (4 * MEMORY_HEADROOM_MIN)

static unsigned wait, periods_left;

static bool is_short(void)
{
    const unsigned stalled_percent = 10;
    size_t headroom = headroom_bytes(os_now_ns());
    bool is_little = headroom < MEMORY_HEADROOM_MIN ||
                     (headroom < NEAR_BYTES && os_memory_stall_percent() >= stalled_percent);
    atomic_store(&memory_is_short, is_little);
    return is_little;
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
    if (shortage_was_purged())
        return true;
    size_t bytes = heap_purge(purge_force, NULL);
    wait = bytes >= YIELD_MIN || wait == 0 ? WAIT_MIN : (unsigned)min_size(wait * 2, WAIT_MAX);
    periods_left = wait;
    return bytes >= YIELD_MIN;
}
