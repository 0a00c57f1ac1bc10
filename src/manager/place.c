/* SPDX-License-Identifier: MIT
 *
 * A manager on the program's own cpu would take its time.  Which cpus a program may use changes while it runs: it is
 * pinned, by itself or from outside, its cpuset or its quota shrinks, and grows again.  The manager has the cpus of
 * the thread that started it, so both are looked at: the one's own mask, should all threads have been moved, and the
 * other's, should that one have been.
 *
 * The quota is in files, which the program's threads do not open.
 */
#include "manager/place.h"

#include "options/options.h"
#include "os/os.h"

static bool is_asked_for(void)
{
    return option_get(option_manager) == manager_on;
}

bool place_may_be_spare(void)
{
    return is_asked_for() || os_cpus_allowed(0) >= 2;
}

bool place_is_spare(uint32_t starter)
{
    return is_asked_for() ||
           (os_cpus_allowed(0) >= 2 && os_cpus_allowed(starter) != 1 && os_cpu_quota_percent() >= 200);
}

bool place_is_taken(void)
{
    return !is_asked_for() && os_cpus_are_busy();
}
