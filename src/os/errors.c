/* SPDX-License-Identifier: MIT */
#include "os/errors.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "os/filter.h"
#include "os/os.h"

#define PAGE_BYTES 4096

/* On a page of its own: a pointer that is called when memory is damaged must not lie where a stray write can reach
 * it. */
static union {
    struct {
        error_hook *_Atomic hook;
        bool is_sealed;
        char file[2048]; /* "": none */
    };
    char page[PAGE_BYTES];
} outlet __attribute__((aligned(PAGE_BYTES)));

THREAD_LOCAL bool is_in_hook;

void error_seal(void)
{
    if (os_page_bytes != PAGE_BYTES)
        return;
    outlet.is_sealed = true;
    os_set_writable(&outlet, PAGE_BYTES, false);
}

void error_to_hook(error_hook *hook)
{
    const bool was_sealed = outlet.is_sealed;
    if (was_sealed)
        os_set_writable(&outlet, PAGE_BYTES, true);
    atomic_store(&outlet.hook, hook);
    if (was_sealed)
        os_set_writable(&outlet, PAGE_BYTES, false);
}

bool error_to_file(const char *path)
{
    const size_t length = text_length(path);
    if (length >= sizeof outlet.file)
        return false;
    __builtin_memcpy(outlet.file, path, length + 1);
    return true;
}

static bool tell_file(struct line *line)
{
    if (outlet.file[0] == '\0')
        return false;
    /* O_NONBLOCK: a pipe that nobody reads is no place for a report. */
    const long flags = O_WRONLY | O_APPEND | O_CREAT | O_NOCTTY | O_NONBLOCK | O_CLOEXEC;
    long fd = sys_call_if(need_plain, SYS_openat, AT_FDCWD, (long)outlet.file, flags, 0600, 0, 0);
    if (sys_failed(fd))
        return false;
    line_flush(line, (int)fd);
    sys_call(SYS_close, fd, 0, 0, 0, 0, 0);
    return true;
}

/* An error in the hook itself goes to the file, or standard error. */
static bool tell_hook(struct line *line)
{
    error_hook *hook = atomic_load(&outlet.hook);
    if (hook == NULL || is_in_hook)
        return false;
    is_in_hook = true;
    hook(line_end(line), line->used);
    is_in_hook = false;
    line->used = 0;
    return true;
}

void error_tell(struct line *line)
{
    if (!tell_hook(line) && !tell_file(line))
        line_tell(line);
}

_Noreturn void check_failed(const char *what, const char *file, int number)
{
    struct line line = LINE_EMPTY;
    line_add(&line, "sutler: internal error: %s (%s:%lu)\n", what, file, (unsigned long)number);
    error_tell(&line);
    abort();
}
