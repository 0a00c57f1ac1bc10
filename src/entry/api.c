/* SPDX-License-Identifier: MIT
 *
 * sutler.h.
 */
#include "sutler/sutler.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/version.h"
#include "core/core.h"
#include "core/summary.h"
#include "manager/snapshot.h"
#include "heap/purge.h"
#include "manager/manager.h"
#include "options/options.h"
#include "os/errors.h"
#include "os/os.h"

const char *sutler_version(void)
{
    return VERSION_TEXT;
}

bool sutler_is_active(void)
{
    /* Through the symbol everybody else calls, kept from the compiler, which knows what malloc does. */
    void *(*volatile bound_malloc)(size_t) = malloc;
    void (*volatile bound_free)(void *) = free;
    void *p = bound_malloc(1);
    bool active = core_ready() && p != NULL && region_contains(p);
    bound_free(p);
    return active;
}

int sutler_option_get(const char *name, char *value, size_t size)
{
    enum option o = option_find(name);
    if (o == option_count)
        return EINVAL;
    return option_word(o, value, size) < size ? 0 : ERANGE;
}

int sutler_option_set(const char *name, const char *value)
{
    enum option o = option_find(name);
    return o == option_count ? EINVAL : option_set(o, value);
}

size_t sutler_purge(void)
{
    if (!core_ready())
        return 0;
    quarantine_release_everything();
    if (!slow_enter())
        return 0;
    /* What a pass covers may not have been resident in the first place; what counts is what the process no longer
     * has. */
    size_t before = os_resident_bytes();
    size_t covered = heap_purge(purge_force, NULL);
    size_t after = os_resident_bytes();
    slow_leave();
    return before == 0 ? covered : before > after ? min_size(before - after, covered) : 0;
}

void sutler_manager_park(void)
{
    bool waits = slow_enter();
    manager_park(waits);
    if (waits)
        slow_leave();
}

void sutler_manager_resume(void)
{
    manager_resume();
}

void sutler_report_to(sutler_report_hook *hook)
{
    if (core_ready())
        error_to_hook(hook);
}

void sutler_core_calls_only(void)
{
    sutler_manager_park();
    manager_forbid();
    sutler_manager_resume();
    os_expect_filter();
    os_note_filter(true);
}

int sutler_stats_get(struct sutler_stats *stats, size_t size)
{
    struct sutler_stats all;
    if (stats == NULL || size < sizeof stats->size)
        return EINVAL;
    snapshot_take(&all);
    memcpy(stats, &all, min_size(size, sizeof all));
    return 0;
}

void sutler_stats_print(int fd, bool json)
{
    summary_write(fd, json);
}
