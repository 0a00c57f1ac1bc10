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
    if (rcs_is_suspended() || manager_is_anothers())
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

PARKED(setuid, (uid_t uid), (uid))
PARKED(seteuid, (uid_t uid), (uid))
PARKED(setreuid, (uid_t real, uid_t effective), (real, effective))
PARKED(setresuid, (uid_t real, uid_t effective, uid_t saved), (real, effective, saved))
PARKED(setgid, (gid_t gid), (gid))
PARKED(setegid, (gid_t gid), (gid))
PARKED(setregid, (gid_t real, gid_t effective), (real, effective))
PARKED(setresgid, (gid_t real, gid_t effective, gid_t saved), (real, effective, saved))
PARKED(setgroups, (size_t count, const gid_t *groups), (count, groups))
PARKED(initgroups, (const char *user, gid_t group), (user, group))
PARKED(capset, (void *header, const void *data), (header, data))
PARKED(chroot, (const char *path), (path))
PARKED(unshare, (int flags), (flags))
PARKED(setns, (int fd, int type), (fd, type))

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

static bool shuts_in(int operation)
{
    return operation == PR_SET_SECCOMP || operation == PR_SET_NO_NEW_PRIVS;
}

NEXT(prctl, (int operation, ...))

EXPORT int prctl(int operation, ...)
{
    unsigned long argument[4];
    va_list list;
    va_start(list, operation);
    for (int i = 0; i < 4; i++)
        argument[i] = va_arg(list, unsigned long);
    va_end(list);
    if (!has_prctl())
        return -1;
    bool parked = concerns_all_threads(operation) && begin(), filters = parked && operation == PR_SET_SECCOMP;
    if (filters)
        os_expect_filter();
    int result = next_prctl(operation, argument[0], argument[1], argument[2], argument[3]);
    if (filters)
        os_note_filter(result == 0);
    if (result == 0 && parked && shuts_in(operation))
        manager_forbid();
    end(parked);
    return result;
}

/* libc has no function for seccomp: whoever installs a filter (libseccomp does) goes through this one. */
static bool installs_filter(long number, const long *argument)
{
    if (number == SYS_seccomp)
        return argument[0] == SECCOMP_SET_MODE_STRICT || argument[0] == SECCOMP_SET_MODE_FILTER;
    return number == SYS_prctl && argument[0] == PR_SET_SECCOMP;
}

/* For the calling thread alone: whoever does that for thread after thread (libcap's libpsx) means all of them. */
static bool changes_credentials(long number, const long *argument)
{
    switch (number) {
    case SYS_setuid:
    case SYS_setgid:
    case SYS_setreuid:
    case SYS_setregid:
    case SYS_setresuid:
    case SYS_setresgid:
    case SYS_setgroups:
    case SYS_capset:
    case SYS_unshare:
    case SYS_setns:
    case SYS_chroot:
        return true;
    default:
        return number == SYS_prctl && concerns_all_threads((int)argument[0]);
    }
}

EXPORT long syscall(long number, ...)
{
    long argument[6];
    va_list list;
    va_start(list, number);
    for (int i = 0; i < 6; i++)
        argument[i] = va_arg(list, long);
    va_end(list);
    bool filters = installs_filter(number, argument);
    bool parked = (filters || changes_credentials(number, argument)) && begin();
    filters &= parked;
    if (filters)
        os_expect_filter();
    long result = sys_call(number, argument[0], argument[1], argument[2], argument[3], argument[4], argument[5]);
    if (filters)
        os_note_filter(result >= 0);
    if (parked && result >= 0 && (filters || (number == SYS_prctl && shuts_in((int)argument[0]))))
        manager_forbid();
    end(parked);
    if (!sys_failed(result))
        return result;
    errno = (int)-result;
    return -1;
}
