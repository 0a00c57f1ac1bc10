/* SPDX-License-Identifier: MIT
 *
 * Whether calls take the fast paths: from the start on, but for the time a child of vfork lives (vfork.h).
 */
#include "core/core.h"
#include "core/locked.h"
#include "heap/arena.h"
#include "rcs/area.h"
#include "rcs/hot.h"
#include "rcs/rcs.h"

bool locked_paths_are_open;

static struct lock vforks_lock = LOCK_FREE(rank_vforks);
static unsigned vforks; /* children alive */

void fast_paths_open(void)
{
    if (sync_mode != sync_rcs) {
        locked_paths_are_open = true;
        return;
    }
    hot.region_bytes = hot.flat_bytes;
#ifdef SUTLER_HARDENED
    if (!marks.usual)
        return; /* its malloc is slow */
    hot.small_limit = SMALL_BYTES_MAX; /* blocks have a byte more */
    hot.medium_limit = CLASS_BYTES_MAX;
#else
    hot.small_limit = SMALL_BYTES_MAX + 1;
    hot.medium_limit = CLASS_BYTES_MAX + 1;
#endif
}

static void open_again(void)
{
    lock_take(&span_lock);
    fast_paths_open();
    lock_release(&span_lock);
}

void fast_paths_shut_malloc(void)
{
    hot.small_limit = hot.medium_limit = 0;
    locked_paths_are_open = false;
}

void fast_paths_open_again(void)
{
    lock_take(&vforks_lock);
    if (vforks == 0)
        open_again();
    lock_release(&vforks_lock);
}

void fast_paths_suspend(void)
{
    lock_take(&vforks_lock);
    if (vforks++ == 0)
        hot.small_limit = hot.medium_limit = hot.region_bytes = 0;
    lock_release(&vforks_lock);
}

void fast_paths_resume(void)
{
    lock_take(&vforks_lock);
    if (vforks > 0 && --vforks == 0)
        open_again();
    lock_release(&vforks_lock);
}

void fast_paths_forget(void)
{
    lock_reset(&vforks_lock);
    if (rcs_is_in_vfork()) /* a child of the child of a vfork */
        rcs_suspended = sync_mode != sync_rcs || area_register_again() ? 0 : RCS_HAS_NO_AREA;
    vforks = 0;
    open_again(); /* perhaps the last of them had ended, and that was not done yet */
}
