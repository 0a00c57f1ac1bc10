/* SPDX-License-Identifier: MIT
 *
 * The headroom is cached: reading it costs up to twenty files, as long as clearing a huge page or two.  The cached
 * value holds until this process has taken a sixteenth of it, or others may have: they are expected to take a gigabyte
 * in ten seconds, and if one is faster, only the prefault pool is at stake, 8 MiB.  Limits rarely change: where no
 * group had one, the groups are read again after a minute, and until then only the machine is.  Away from limits that
 * is one file in ten seconds.
 */
#include "manager/headroom.h"

#include <stdatomic.h>

#include "base/bits.h"
#include "heap/allowance.h"
#include "heap/ample.h"
#include "heap/demand.h"
#include "heap/shortage.h"
#include "heap/large.h"
#include "heap/span.h"
#include "os/os.h"

#define PART                16u
#define NS_PER_TAKEN_BYTE   10u
#define LOOK_NS_MAX         10000000000ull
#define GROUPS_LOOK_NS      60000000000ull
/* What was freed may be kept in a quarter of what is left, what is kept already among it. */
#define ALLOWED_PART        4u
#define ALLOWED_MIN         (4ul << 20)
/* Between two looks while memory is short: by then what was purged and taken may have been miscounted. */
#define SHORT_LOOK_NS       20000000ull

static size_t seen_bytes, in_use_then;
static size_t used_bytes; /* prefaulted since */
static uint64_t holds_until_ns, groups_until_ns;
static bool is_limited; /* some group has a limit */
static bool maps_freely; /* what is kept costs nothing but memory */

static _Atomic bool is_looking; /* somebody is */

static size_t spare_bytes(void)
{
    return seen_bytes - min_size(seen_bytes, MEMORY_HEADROOM_MIN);
}

/* How much is left says nothing of who else takes it: so the program may take a part of it, and then this looks again.
 * Where no group has a limit the manager does so in time. */
static void allow(void)
{
    const bool is_short = seen_bytes < MEMORY_HEADROOM_MIN;
    if (!is_limited && !is_short && !heap_is_unmanaged())
        allowance_set(ALLOWANCE_UNLIMITED);
    else if (is_short)
        allowance_set((int64_t)seen_bytes - (int64_t)MEMORY_HEADROOM_MIN);
    else
        allowance_set((int64_t)max_size(spare_bytes() / ALLOWED_PART, ALLOWED_MIN));
}

static void look(uint64_t now_ns)
{
    seen_bytes = os_machine_headroom();
    if (is_limited || now_ns >= groups_until_ns) {
        size_t left = os_groups_headroom();
        is_limited = left != SIZE_MAX;
        seen_bytes = min_size(seen_bytes, left);
        maps_freely = os_may_map_freely() && os_groups_are_known();
        groups_until_ns = now_ns + GROUPS_LOOK_NS;
    }
    allow();
    used_bytes = 0;
    in_use_then = heap_in_use_bytes();
    holds_until_ns = now_ns + min_size(spare_bytes(), LOOK_NS_MAX / NS_PER_TAKEN_BYTE) * NS_PER_TAKEN_BYTE;
    const size_t kept = heap_kept_bytes(), most = (spare_bytes() + kept) / ALLOWED_PART;
    if (!maps_freely || seen_bytes == SIZE_MAX)
        ample_allow(0, 0, 0);
    else if (!is_limited) /* for as long as that is taken to stay so */
        ample_allow(most, groups_until_ns, SIZE_MAX);
    else /* for as long as what was seen holds */
        ample_allow(most, holds_until_ns, in_use_then + kept + spare_bytes() / PART);
}

static bool holds(uint64_t now_ns)
{
    size_t in_use = heap_in_use_bytes(), taken = used_bytes + in_use - min_size(in_use, in_use_then);
    return now_ns < holds_until_ns && taken < spare_bytes() / PART;
}

size_t headroom_bytes(uint64_t now_ns)
{
    const bool is_due = !holds(now_ns) || ample_is_out_of_date() || allowance_is_used_up();
    if (is_due && !atomic_exchange(&is_looking, true)) {
        look(now_ns);
        atomic_store(&is_looking, false);
    }
    return seen_bytes;
}

void headroom_use(size_t bytes)
{
    used_bytes += bytes;
}

/* True if memory is short. */
static bool look_in_passing(void)
{
    static _Atomic uint64_t looked_ns;
    const uint64_t now_ns = os_now_ns();
    if (atomic_load(&memory_is_short) && now_ns - atomic_load(&looked_ns) < SHORT_LOOK_NS)
        return true;
    atomic_store(&looked_ns, now_ns);
    if (heap_is_unmanaged())
        atomic_store(&memory_is_short, headroom_bytes(now_ns) < MEMORY_HEADROOM_MIN);
    else
        demand_raise();
    return atomic_load(&memory_is_short);
}

COLD void headroom_in_passing(void)
{
    if (look_in_passing() && allowance_is_used_up())
        shortage_purge();
}

void headroom_forget(void)
{
    shortage_forget();
    atomic_store(&is_looking, false);
}
