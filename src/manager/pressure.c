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

#define WAIT_NS_MIN 1000000000ull /* from one purge to the next */
#define WAIT_NS_MAX 32000000000ull
#define YIELD_MIN (4ul << 20)
#define NEAR_BYTES (4 * MEMORY_HEADROOM_MIN)

static uint64_t wait_ns, not_before_ns;

static bool is_short(uint64_t now_ns)
{
    const unsigned stalled_percent = 10;
    size_t headroom = headroom_bytes(now_ns);
    bool is_little = headroom < MEMORY_HEADROOM_MIN ||
                     (headroom < NEAR_BYTES && os_memory_stall_percent() >= stalled_percent);
    atomic_store(&memory_is_short, is_little);
    return is_little;
}

bool pressure_run(uint64_t budget_ns)
{
    (void)budget_ns; /* as reclaim */
    const uint64_t now_ns = os_now_ns();
    if (!is_short(now_ns))
        return false;
    if (now_ns < not_before_ns || shortage_was_purged())
        return true;
    size_t bytes = heap_purge(purge_force, NULL);
    wait_ns = bytes >= YIELD_MIN || wait_ns == 0 ? WAIT_NS_MIN : min_size(2 * wait_ns, WAIT_NS_MAX);
    not_before_ns = now_ns + wait_ns;
    return bytes >= YIELD_MIN;
}
