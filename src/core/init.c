/* SPDX-License-Identifier: MIT
 *
 * Initialisation on first use.  The zeroed state is valid: limits of zero send the first malloc, wherever it comes from
 * (the loader, another library's constructor), through malloc_any to here.  Until it is done other threads wait;
 * there normally are none.
 */
#include <stdatomic.h>

#include "core/child.h"
#include "core/core.h"
#include "core/locked.h"
#include "heap/signal_safe.h"
#include "manager/wake.h"
#include "manager/manager.h"
#include "options/options.h"
#include "os/errors.h"
#include "os/hooks.h"
#include "os/os.h"
#ifdef SUTLER_HARDENED
#include "marks/marks.h"
#endif

_Atomic uint32_t core_state = core_untouched;
static struct lock start_lock = LOCK_FREE(rank_start);

/* Whoever installed a filter that was there before the program can say by `on` that it lets through what the manager
 * calls; nobody can say so of a filter the program installs itself. */
static void choose_system_calls(void)
{
    unsigned choice = option_get(option_manager);
    os_allow_luxuries(choice == manager_on || (choice == manager_auto && !os_is_filtered()));
    if (!os_may_call_luxuries())
        manager_forbid();
}

static bool start(void)
{
    os_init();
    options_read();
    choose_system_calls();
#ifdef SUTLER_HARDENED
    marks_start();
#endif
    if (!region_start())
        return false;
#ifdef SUTLER_HARDENED
    marks_seal();
    error_seal();
#endif
    rcs_start((enum sync_mode)option_get(option_sync), &empty_heap);
    signal_safe_start();
    if (!child_watch())
        return false;
    if (sync_mode == sync_rcs)
        size_class_start();
    fast_paths_open();
    return true;
}

COLD bool core_start(void)
{
    if (!slow_enter())
        return false; /* a signal handler in the middle of start() */
    lock_take(&start_lock);
    if (core_state == core_untouched)
        atomic_store(&core_state, start() ? core_is_ready : core_failed);
    lock_release(&start_lock);
    slow_leave();
    return core_state == core_is_ready;
}

/* When constructors run, libc is able to take fork handlers. */
static __attribute__((constructor(101))) void constructor(void)
{
    os_hooks_init();
    if (core_ready())
        fork_register();
    wake_note_leader(); /* it is this thread, unless the library was opened by another */
}
