/* SPDX-License-Identifier: MIT */
#include "core/vfork.h"

#include <errno.h>

#include "core/core.h"
#include "rcs/rcs.h"

void vfork_begins(void)
{
    if (!core_ready())
        return;
    fast_paths_suspend();
    rcs_suspend();
}

int vfork_returns(long result)
{
    if (core_ready()) {
        rcs_resume();
        fast_paths_resume();
    }
    if (result >= 0)
        return (int)result;
    errno = (int)-result;
    return -1;
}
