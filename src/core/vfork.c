/* SPDX-License-Identifier: MIT */
#include "core/vfork.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>

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

static void vfork_ends(void)
{
    if (!core_ready())
        return;
    if (rcs_is_in_vfork()) /* not in a child that a signal handler forked before there was one of vfork */
        rcs_suspended--;
    const bool entered = slow_enter(); /* not if the child was killed in a slow path */
    fast_paths_resume();
    if (entered)
        slow_leave();
}

int vfork_returns(long result)
{
    vfork_ends();
    return result_of(result);
}

int vfork_by_fork(void)
{
    return result_of(sys_call(SYS_clone, SIGCHLD, 0, 0, 0, 0, 0));
}

#ifdef __GLIBC__
/* A vfork whose child has a stack of its own; thread-local variables of its own would not tell it of rcs_suspended. */
static bool is_vfork(int flags)
{
    const int asked = CLONE_VM | CLONE_VFORK;
    return (flags & (asked | CLONE_THREAD | CLONE_SETTLS)) == asked;
}

typedef int child_function(void *);
int __clone(child_function *function, void *stack, int flags, void *argument, ...);

EXPORT int clone(child_function *function, void *stack, int flags, void *argument, ...)
{
    va_list list;
    va_start(list, argument);
    pid_t *parent_id = va_arg(list, pid_t *);
    void *tls = va_arg(list, void *);
    pid_t *child_id = va_arg(list, pid_t *);
    va_end(list);
    const bool is_one = is_vfork(flags), shares = is_one && vfork_begins();
    if (is_one && !shares)
        flags &= ~(CLONE_VM | CLONE_VFORK); /* as vfork_by_fork */
    const int child = __clone(function, stack, flags, argument, parent_id, tls, child_id);
    const int error = errno;
    if (shares)
        vfork_ends();
    errno = error;
    return child;
}
#endif
