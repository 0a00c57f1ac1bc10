/* SPDX-License-Identifier: MIT
 *
 * A manager on the program's only cpu would take time from it.  Which cpus a program may use changes while it runs: it
 * is pinned, or its cpuset or quota shrinks and grows again.  The manager began with the cpus of the thread that
 * started it.  It looks at its own mask, in case all threads were moved, and at that thread's, in case only that one
 * was.
 *
 * The quota is in files.  The program's threads open none of them, the manager does once in ten seconds.  A quota that
 * is too small is remembered for as long, so that no thread is made only to find it again.
 */
#include "manager/spare_cpu.h"

#include <stdatomic.h>

#include "options/options.h"
#include "os/os.h"

#define QUOTA_LOOK_NS 10000000000ull
#define QUOTA_PERCENT_MIN 200u

/* As last read; unknown until the first time. */
static _Atomic uint64_t quota_until_ns;
static _Atomic unsigned quota_percent;

static bool quota_is_known(void)
{
    return os_now_ns() < atomic_load(&quota_until_ns);
}

static bool quota_leaves_one(void)
{
    if (!quota_is_known()) {
        atomic_store(&quota_percent, os_cpu_quota_percent());
        atomic_store(&quota_until_ns, os_now_ns() + QUOTA_LOOK_NS);
    }
    return atomic_load(&quota_percent) >= QUOTA_PERCENT_MIN;
}

static bool is_asked_for(void)
{
    return option_get(option_manager) == manager_on;
}

bool spare_cpu_is_possible(void)
{
    bool is_too_small = quota_is_known() && atomic_load(&quota_percent) < QUOTA_PERCENT_MIN;
    return is_asked_for() || (os_cpus_allowed(0) >= 2 && !is_too_small);
}

bool spare_cpu_is_granted(uint32_t starter)
{
    return is_asked_for() ||
           (os_cpus_allowed(0) >= 2 && os_cpus_allowed(starter) != 1 && quota_leaves_one());
}

bool spare_cpu_is_busy(void)
{
    return !is_asked_for() && os_cpus_are_busy();
}
