/* SPDX-License-Identifier: MIT
 *
 * Standard error, and whether number 2 still is that.  A program may close it, and the next file it opens has number 2:
 * a data file, or a client's connection, into which a report must not be written.  So what the number stood for at the
 * start is remembered, and compared before a line is written: one fstat at the start, and one for each line.  Under a
 * seccomp filter, which need not let that through, number 2 is taken for what it was.
 */
#include <fcntl.h>
#include <sys/stat.h>

#include "os/filter.h"
#include "os/os.h"
#include "os/syscall.h"

struct file {
    uint64_t device, inode, special; /* which device, if it is one */
    bool is_open, is_stream;
};

static struct file at_start;

static struct file file_of(int fd)
{
    struct stat file;
    if (sys_failed(sys_call_if(need_plain, SYS_fstat, fd, (long)&file, 0, 0, 0, 0)))
        return (struct file){0};
    return (struct file){file.st_dev, file.st_ino, file.st_rdev, true, S_ISFIFO(file.st_mode) || S_ISCHR(file.st_mode)};
}

static bool is_same(struct file a, struct file b)
{
    return a.is_open && b.is_open && a.device == b.device && a.inode == b.inode && a.special == b.special;
}

void os_note_standard_error(void)
{
    at_start = file_of(2);
}

int os_keep_fd(int fd)
{
    const int high = 500;
    long kept = sys_call_if(need_plain, SYS_fcntl, fd, F_DUPFD_CLOEXEC, high, 0, 0, 0);
    return sys_failed(kept) ? fd : (int)kept;
}

int os_standard_error(int kept)
{
    if (os_is_filtered() || is_same(file_of(kept), at_start))
        return kept;
    return is_same(file_of(2), at_start) ? 2 : -1;
}

bool os_standard_error_is_written(void)
{
    struct file now = file_of(2);
    if (os_is_filtered() || is_same(now, at_start) || now.is_stream || is_same(now, file_of(1)))
        return true;
    long flags = sys_call_if(need_plain, SYS_fcntl, 2, F_GETFL, 0, 0, 0, 0);
    return !sys_failed(flags) && (flags & O_APPEND) != 0;
}

long os_open_standard_error(void)
{
    /* The files of the process's first thread. */
    long fd = sys_call_if(need_plain, SYS_openat, AT_FDCWD, (long)"/proc/self/fd/2",
                          O_WRONLY | O_APPEND | O_NOCTTY | O_CLOEXEC, 0, 0, 0);
    if (sys_failed(fd))
        return fd;
    struct file now = file_of((int)fd);
    if (is_same(now, at_start) || now.is_stream)
        return fd;
    sys_call(SYS_close, fd, 0, 0, 0, 0, 0);
    return -1;
}
