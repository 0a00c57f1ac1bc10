/* SPDX-License-Identifier: MIT
 *
 * Small files of the system's.  Each opening is counted, for callers should ask rarely.
 */
#include <fcntl.h>

#include "os/filter.h"
#include "os/os.h"
#include "os/syscall.h"

static _Atomic uint64_t opens;

long os_open(const char *path)
{
    opens++;
    return sys_call(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC, 0, 0, 0);
}

uint64_t os_file_opens(void)
{
    return opens;
}

static const char *read_file(enum need need, const char *path, char *text, size_t size)
{
    long length = 0;
    if (need_begins(need)) {
        long fd = os_open(path);
        if (!sys_failed(fd)) {
            length = sys_call(SYS_read, fd, (long)text, (long)(size - 1), 0, 0, 0);
            sys_call(SYS_close, fd, 0, 0, 0, 0, 0);
        }
        need_ends();
    }
    text[length > 0 ? length : 0] = '\0';
    return text;
}

const char *os_read_file(const char *path, char *text, size_t size)
{
    return read_file(need_luxury, path, text, size);
}

const char *os_read_file_for_report(const char *path, char *text, size_t size)
{
    return read_file(need_plain, path, text, size);
}

bool os_file_is_there(const char *path)
{
    long fd = -EPERM;
    if (need_begins(need_luxury)) {
        fd = os_open(path);
        if (!sys_failed(fd))
            sys_call(SYS_close, fd, 0, 0, 0, 0, 0);
        need_ends();
    }
    return !sys_failed(fd);
}
