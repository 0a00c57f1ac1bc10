/* SPDX-License-Identifier: MIT
 *
 * The headroom is cached: reading it costs up to twenty files, as long as clearing a huge page or two.  The cached
 * value holds until this process has taken a sixteenth of it, or half of what it was allowed (heap/allowance.h), or
 * others may have: they are expected to take a gigabyte in ten seconds.  Limits rarely change: where no
 * group had one, the groups are read again after a minute, and until then only the machine is.  Away from limits that
 * is one file in ten seconds.
 */
#include "manager/headroom.h"

#include <stdatomic.h>

#include "base/bits.h"
#include "heap/allowance.h"
#include "heap/ample.h"
#include "heap/demand.h"
#include "heap/large.h"
#include "heap/shortage.h"
#include "manager/allow.h"
#include "manager/jobs.h"
#include "os/os.h"

#define PART              16u
#define NS_PER_TAKEN_BYTE 10u
#define LOOK_NS_MAX       10000000000ull
#define GROUPS_LOOK_NS    60000000000ull
/* Between two looks while memory is short: by then what was purged and taken may have been miscounted. */
#define SHORT_LOOK_NS 2000000ull
/* If the manager is wanted and has not looked for so long, the program does: it may be without a processor. */
#define LATE_NS 10000000ull
/* What was freed may be kept in a quarter of what is left, what is kept already among it. */
#define KEPT_PART 4u

static _Atomic size_t seen_bytes = SIZE_MAX;
static size_t in_use_then;
static size_t used_bytes; /* prefaulted since */
static uint64_t holds_until_ns, groups_until_ns;
static bool is_limited; /* some group has a limit */
static bool maps_freely; /* what is kept costs nothing but memory */

static _Atomic bool is_wanted; /* the program has used up what it was allowed */
static _Atomic bool is_looking; /* somebody is */

/* Where no group has a limit, and the machine has much, the manager looks in time. */
static bool is_looked_at(void)
{
    return !is_limited && seen_bytes >= MEMORY_HEADROOM_MIN && !heap_is_unmanaged();
}

static size_t spare_bytes(void)
{
    return seen_bytes - min_size(seen_bytes, MEMORY_HEADROOM_MIN);
}

/* A program (the manager has a table of its own) may have no file descriptor left for a while: what was seen before
 * stays, and soon this looks again. */
static bool is_unreadable(size_t seen, bool by_program)
{
    if (seen != SIZE_MAX || !by_program)
        return false;
    allow_until_read();
    return true;
}

static void look(uint64_t now_ns, bool by_program)
{
    size_t seen = os_machine_headroom();
    if (is_unreadable(seen, by_program))
        return;
    const bool all_is_due = now_ns >= groups_until_ns;
    if (is_limited || all_is_due) {
        size_t left = os_groups_headroom();
        is_limited = left != SIZE_MAX;
        seen = min_size(seen, left);
    }
    if (all_is_due) {
        maps_freely = os_may_map_freely() && os_groups_are_known();
        groups_until_ns = now_ns + GROUPS_LOOK_NS;
    }
    atomic_store(&seen_bytes, seen);
    allow_part_of(seen, is_looked_at(), now_ns);
    used_bytes = 0;
    in_use_then = heap_in_use_bytes();
    holds_until_ns = now_ns + min_size(spare_bytes(), LOOK_NS_MAX / NS_PER_TAKEN_BYTE) * NS_PER_TAKEN_BYTE;
    const size_t kept = heap_kept_bytes(), most = (spare_bytes() + kept) / KEPT_PART;
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

static void look_if_due(uint64_t now_ns, bool by_program)
{
    const bool is_due = !holds(now_ns) || ample_is_out_of_date() || atomic_load(&is_wanted);
    if (is_due && !atomic_exchange(&is_looking, true)) {
        atomic_store(&is_wanted, false);
        look(now_ns, by_program);
        atomic_store(&is_looking, false);
    }
}

size_t headroom_bytes(uint64_t now_ns)
{
    look_if_due(now_ns, heap_is_unmanaged());
    return seen_bytes;
}

void headroom_use(size_t bytes)
{
    used_bytes += bytes;
}

static bool is_little(void)
{
    return seen_bytes <= MEMORY_HEADROOM_MIN;
}

bool headroom_is_short(uint64_t now_ns)
{
    headroom_bytes(now_ns);
    if (is_little())
        atomic_store(&memory_is_short, true);
    return is_little();
}

bool headroom_run(uint64_t budget_ns)
{
    (void)budget_ns;
    if (atomic_load(&is_wanted))
        headroom_is_short(os_now_ns());
    return false;
}

/* Not again at once while memory is short: then what is purged counts. */
static void look_in_passing(void)
{
    static _Atomic uint64_t came_ns, wanted_since_ns;
    const uint64_t now_ns = os_now_ns();
    const bool is_used_up = allowance_is_used_up();
    if (is_used_up && atomic_load(&memory_is_short) && now_ns - atomic_load(&came_ns) < SHORT_LOOK_NS)
        return;
    atomic_store(&came_ns, now_ns);
    if (!atomic_exchange(&is_wanted, true))
        atomic_store(&wanted_since_ns, now_ns);
    allowance_note_low();
    const bool is_late = is_used_up && now_ns - atomic_load(&wanted_since_ns) > LATE_NS;
    if (!heap_is_unmanaged() && !is_late)
        return demand_raise();
    look_if_due(now_ns, true);
    atomic_store(&memory_is_short, is_little()); /* a manager's pressure job may say so, too */
}

COLD void headroom_in_passing(void)
{
    look_in_passing();
    if (allowance_is_used_up() && atomic_load(&memory_is_short))
        shortage_purge();
}

void headroom_forget(void)
{
    shortage_forget();
    allowance_reset();
    atomic_store(&is_looking, false);
}
