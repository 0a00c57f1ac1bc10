/* SPDX-License-Identifier: MIT */
#include "core/vfork.h"

#include <errno.h>

#include "core/core.h"
#include "heap/span.h"
#include "os/lock.h"
#include "rcs/rcs.h"

static struct lock children_lock = LOCK_FREE;
static unsigned children; /* alive */

static void open_fast_paths(void)
{
    lock_take(&span_lock);
    fast_paths_open();
    lock_release(&span_lock);
}

void vfork_begins(void)
{
    if (!core_ready())
        return;
    lock_take(&children_lock);
    if (children++ == 0)
        fast_paths_close();
    lock_release(&children_lock);
    rcs_suspend();
}

static void end(void)
{
    rcs_resume();
    lock_take(&children_lock);
    if (--children == 0)
        open_fast_paths();
    lock_release(&children_lock);
}

int vfork_returns(long result)
{
    if (core_ready())
        end();
    if (result >= 0)
        return (int)result;
    errno = (int)-result;
    return -1;
}

void vfork_forget(void)
{
    lock_reset(&children_lock);
    rcs_resume_all();
    if (children != 0)
        open_fast_paths();
    children = 0;
}
