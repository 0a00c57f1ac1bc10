/* SPDX-License-Identifier: MIT
 *
 * Own reader of the environment: getenv may be interposed, and the first malloc can come before libc has set environ.
 * Then it is where the system laid it, behind the arguments, of which glibc's loader tells.  Elsewhere
 * /proc/self/environ is read, in pieces: Kubernetes has environments of hundreds of kilobytes.
 */
#include <fcntl.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "os/filter.h"
#include "os/line.h"
#include "os/os.h"
#include "os/syscall.h"

/* No entry of ours is longer. */
#define ENTRY_BYTES_MAX 4096

/* A piece of the environment.  It begins with what the last piece held of an entry that it did not end. */
struct piece {
    char text[4 * ENTRY_BYTES_MAX];
    size_t used;
    bool skips; /* the rest of an entry whose beginning did not fit */
};

/* Visits the whole entries and keeps the rest. */
static void visit_whole(struct piece *p, const char *prefix, void (*visit)(const char *entry))
{
    size_t start = 0;
    for (size_t i = 0; i < p->used; i++)
        if (p->text[i] == '\0') {
            if (!p->skips && text_begins(p->text + start, prefix))
                visit(p->text + start);
            p->skips = false;
            start = i + 1;
        }
    p->used -= start;
    if (p->used > ENTRY_BYTES_MAX)
        p->skips = true;
    if (p->skips)
        p->used = 0;
    __builtin_memmove(p->text, p->text + start, p->used);
}

static void each_from_proc(const char *prefix, void (*visit)(const char *entry))
{
    struct piece p;
    p.used = 0;
    p.skips = false;
    long fd = os_open("/proc/self/environ"), n;
    if (sys_failed(fd))
        return;
    while ((n = sys_call(SYS_read, fd, (long)(p.text + p.used), (long)(sizeof p.text - p.used), 0, 0, 0)) > 0) {
        p.used += (size_t)n;
        visit_whole(&p, prefix, visit);
    }
    sys_call(SYS_close, fd, 0, 0, 0, 0, 0);
}

extern void *__libc_stack_end __attribute__((weak)); /* exported by ld.so; NULL where it made the stack executable */

/* At the stack's end lie the number of arguments, these, NULL, the environment, and NULL.  NULL if it does not look
 * so. */
static char **environment_on_stack(void)
{
    const long most = 1 << 24, *at = &__libc_stack_end != NULL ? __libc_stack_end : NULL;
    if (at == NULL || (uintptr_t)at % sizeof *at != 0 || *at < 0 || *at > most)
        return NULL;
    char **arguments = (char **)(at + 1);
    return arguments[*at] == NULL ? arguments + *at + 1 : NULL;
}

void os_env_each(const char *prefix, void (*visit)(const char *entry))
{
    if (getauxval(AT_SECURE))
        return;
    char **entry = environ != NULL ? environ : environment_on_stack();
    if (entry == NULL) {
        each_from_proc(prefix, visit);
        return;
    }
    for (; *entry != NULL; entry++)
        if (text_begins(*entry, prefix))
            visit(*entry);
}
