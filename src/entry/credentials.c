/* SPDX-License-Identifier: MIT
 *
 * Calls that must see a process of only its own threads.  libc changes the credentials of every thread it knows of,
 * and it does not know of the manager: a manager left running would keep the old ones, or the old root directory.
 * unshare and setns refuse some namespaces to a process with a second thread.  So each parks the manager first and lets
 * it be started anew afterwards.  A process that shuts itself in (seccomp, or the no_new_privs that comes before it)
 * gets no manager any more, and under a filter it makes no other system call it can do without: nobody knows what the
 * filter lets it do, and a call it does not let through may end the process.  System calls made without libc pass us
 * by; programs that make them call sutler_manager_park(), or sutler_core_calls_only().
 *
 * Only in the shared library: a static program's libc cannot be put behind these.
 */
#include <dlfcn.h>
#include <errno.h>
#include <grp.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/compiler.h"
#include "core/child.h"
#include "manager/manager.h"
#include "os/lock.h"
#include "os/os.h"
#include "os/syscall.h"
#include "rcs/rcs.h"
#include "sutler/sutler.h"

/* False if the library was opened late, behind libc, or if another library's setuid stands before ours and may never
 * call it. */
static __attribute__((constructor)) void see(void)
{
    Dl_info own, bound;
    void *everybodys = dlsym(RTLD_DEFAULT, "setuid");
    manager_sees_credentials = everybodys != NULL && dladdr(&manager_sees_credentials, &own) != 0 &&
                               dladdr(everybodys, &bound) != 0 && own.dli_fbase == bound.dli_fbase;
}

/* Parks the manager; returns whether it did.  A vfork child shares its parent's memory but not its credentials, and
 * leaves the parent's manager alone. */
static bool begin(void)
{
    if (background_thread_is_caller()) /* in a signal handler, of a library that asks all threads (libpsx) */
        return false;
    child_notice_outside();
    if (rcs_is_in_vfork() || manager_is_anothers())
        return false;
    manager_call_begins();
    sutler_manager_park();
    return true;
}

static void end(bool parked)
{
    if (!parked)
        return;
    sutler_manager_resume();
    manager_call_ends();
}

/* The next definition of `name`, looked up at the start: these calls are made in signal handlers, where dlsym is not
 * allowed.  has_NAME: false, with errno, if there is none. */
#define NEXT(name, parameters)                                                                                         \
    static int(*next_##name) parameters;                                                                               \
    static __attribute__((constructor)) void find_##name(void)                                                         \
    {                                                                                                                  \
        next_##name = (int(*) parameters)dlsym(RTLD_NEXT, #name);                                                      \
    }                                                                                                                  \
    static bool has_##name(void)                                                                                       \
    {                                                                                                                  \
        if (next_##name == NULL)                                                                                       \
            find_##name();                                                                                             \
        if (next_##name == NULL)                                                                                       \
            errno = ENOSYS;                                                                                            \
        return next_##name != NULL;                                                                                    \
    }

/* Declares `name` as exported and calls the next definition with the manager parked. */
#define PARKED(name, parameters, arguments)                                                                            \
    NEXT(name, parameters)                                                                                             \
    EXPORT int name parameters;                                                                                        \
    EXPORT int name parameters                                                                                         \
    {                                                                                                                  \
        if (!has_##name())                                                                                             \
            return -1;                                                                                                 \
        bool parked = begin();                                                                                         \
        int result = next_##name arguments;                                                                            \
        end(parked);                                                                                                   \
        return result;                                                                                                 \
    }

/* Libraries that know threads of their own make these by syscall as well. */
#define SYSTEM_CALLS(ROW)                                                                                              \
    ROW(setuid, (uid_t uid), (uid))                                                                                    \
    ROW(setreuid, (uid_t real, uid_t effective), (real, effective))                                                    \
    ROW(setresuid, (uid_t real, uid_t effective, uid_t saved), (real, effective, saved))                               \
    ROW(setgid, (gid_t gid), (gid))                                                                                    \
    ROW(setregid, (gid_t real, gid_t effective), (real, effective))                                                    \
    ROW(setresgid, (gid_t real, gid_t effective, gid_t saved), (real, effective, saved))                               \
    ROW(setgroups, (size_t count, const gid_t *groups), (count, groups))                                               \
    ROW(capset, (void *header, const void *data), (header, data))                                                      \
    ROW(chroot, (const char *path), (path))                                                                            \
    ROW(unshare, (int flags), (flags))                                                                                 \
    ROW(setns, (int fd, int type), (fd, type))

SYSTEM_CALLS(PARKED)
PARKED(seteuid, (uid_t uid), (uid))
PARKED(setegid, (gid_t gid), (gid))
PARKED(initgroups, (const char *user, gid_t group), (user, group))

/* Whether the operation changes what the process may do. */
static bool concerns_all_threads(int operation)
{
    switch (operation) {
    case PR_SET_SECCOMP:
    case PR_SET_NO_NEW_PRIVS:
    case PR_SET_SECUREBITS:
    case PR_CAPBSET_DROP:
    case PR_CAP_AMBIENT:
    case PR_SET_KEEPCAPS:
        return true;
    default:
        return false;
    }
}

/* libc has no function for seccomp: whoever installs a filter (libseccomp does) goes through this one. */
static bool installs_filter(long number, const long *argument)
{
    if (number == SYS_seccomp)
        return argument[0] == SECCOMP_SET_MODE_STRICT || argument[0] == SECCOMP_SET_MODE_FILTER;
    return number == SYS_prctl && (int)argument[0] == PR_SET_SECCOMP;
}

/* For the calling thread alone: whoever does that for thread after thread (libcap's libpsx) means all of them. */
static bool changes_credentials(long number, const long *argument)
{
    switch (number) {
#define CASE(name, parameters, arguments) case SYS_##name:
        SYSTEM_CALLS(CASE)
#undef CASE
        return true;
    default:
        return number == SYS_prctl && concerns_all_threads((int)argument[0]);
    }
}

NEXT(prctl, (int operation, ...))

/* Makes the call, by libc's prctl if that is how it came. */
static long make(long number, const long *argument, bool by_prctl)
{
    bool filters = installs_filter(number, argument);
    bool parked = (filters || changes_credentials(number, argument)) && begin();
    filters &= parked;
    if (filters)
        os_expect_filter();
    long result =
        by_prctl ? next_prctl((int)argument[0], argument[1], argument[2], argument[3], argument[4])
                 : sys_call(number, argument[0], argument[1], argument[2], argument[3], argument[4], argument[5]);
    if (filters)
        os_note_filter(result >= 0);
    if (parked && result >= 0 && (filters || (number == SYS_prctl && (int)argument[0] == PR_SET_NO_NEW_PRIVS)))
        manager_forbid();
    end(parked);
    return result;
}

EXPORT int prctl(int operation, ...)
{
    long argument[6] = {operation};
    va_list list;
    va_start(list, operation);
    for (int i = 1; i < 5; i++)
        argument[i] = va_arg(list, long);
    va_end(list);
    return has_prctl() ? (int)make(SYS_prctl, argument, true) : -1;
}

EXPORT long syscall(long number, ...)
{
    long argument[6];
    va_list list;
    va_start(list, number);
    for (int i = 0; i < 6; i++)
        argument[i] = va_arg(list, long);
    va_end(list);
    long result = make(number, argument, false);
    if (!sys_failed(result))
        return result;
    errno = (int)-result;
    return -1;
}
