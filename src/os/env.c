/* SPDX-License-Identifier: MIT
 *
 * Own reader of the environment: getenv may be interposed, and the first malloc can come before libc has set environ
 * (then /proc/self/environ is read into a buffer on the stack; variables cut by its end are ignored).
 */
#include <fcntl.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "os/line.h"
#include "os/os.h"
#include "os/syscall.h"

static bool begins_with(const char *text, const char *prefix)
{
    while (*prefix != '\0')
        if (*text++ != *prefix++)
            return false;
    return true;
}

static void each_from_proc(const char *prefix, void (*visit)(const char *entry))
{
    char text[16384];
    long fd = os_open("/proc/self/environ");
    if (sys_failed(fd))
        return;
    long n = sys_call(SYS_read, fd, (long)text, sizeof text, 0, 0, 0);
    sys_call(SYS_close, fd, 0, 0, 0, 0, 0);
    for (long i = 0, start = 0; i < n; i++)
        if (text[i] == '\0') {
            if (begins_with(text + start, prefix))
                visit(text + start);
            start = i + 1;
        }
}

void os_env_each(const char *prefix, void (*visit)(const char *entry))
{
    if (getauxval(AT_SECURE))
        return;
    if (environ == NULL) {
        each_from_proc(prefix, visit);
        return;
    }
    for (char **entry = environ; *entry != NULL; entry++)
        if (begins_with(*entry, prefix))
            visit(*entry);
}

int os_keep_fd(int fd)
{
    const int high = 500;
    long kept = sys_call(SYS_fcntl, fd, F_DUPFD_CLOEXEC, high, 0, 0, 0);
    return sys_failed(kept) ? fd : (int)kept;
}
