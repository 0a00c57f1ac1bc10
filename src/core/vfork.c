/* SPDX-License-Identifier: MIT */
#include "core/vfork.h"

#include <errno.h>
#include <signal.h>

#include "core/core.h"
#include "os/syscall.h"
#include "rcs/rcs.h"

static int result_of(long result)
{
    if (!sys_failed(result))
        return (int)result;
    errno = (int)-result;
    return -1;
}

bool vfork_begins(void)
{
    if (!core_ready())
        return true;
    if (!slow_enter())
        return false;
    fast_paths_suspend();
    slow_leave();
    rcs_suspended++;
    return true;
}

int vfork_returns(long result)
{
    if (core_ready()) {
        rcs_suspended--;
        const bool entered = slow_enter(); /* not if the child was killed in a slow path */
        fast_paths_resume();
        if (entered)
            slow_leave();
    }
    return result_of(result);
}

int vfork_by_fork(void)
{
    return result_of(sys_call(SYS_clone, SIGCHLD, 0, 0, 0, 0, 0));
}
