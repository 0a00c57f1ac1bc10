/* SPDX-License-Identifier: MIT
 *
 * Environments as Kubernetes makes them, of hundreds of kilobytes, variables of every length and one longer than any
 * buffer: an option at the end of it is heard, where /proc cannot be read as well.  In the second program the loader
 * does not tell where the stack ends, as if it had made it executable.
 */
#include "again.h"
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>

#ifdef STACK_END_IS_HIDDEN
extern void *__libc_stack_end;
void *__libc_stack_end; /* the library finds this one first */
#else
/* Whether an option is heard by a program that finds nothing in /proc: 0 or 1; 2 where that cannot be tried. */
static int look_without_proc(void)
{
    int status, self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    pid_t child = fork();
    CHECK(self >= 0 && child >= 0);
    if (child == 0) {
        if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
            mount("none", "/proc", "tmpfs", 0, NULL) != 0)
            _exit(2);
        setenv("SUTLER_ON_ERROR", "report", 1);
        fexecve(self, (char *[]){(char[]){"again"}, (char[]){"look"}, NULL}, environ);
        _exit(2);
    }
    close(self);
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
    return WEXITSTATUS(status);
}
#endif

static size_t pad;

static void make_large(void)
{
    static char name[32], value[130000];
    for (int i = 0; i < 400; i++) {
        snprintf(name, sizeof name, "SERVICE_%d_PORT", i);
        memset(value, 'x', 700);
        value[500 + i % 200] = 0;
        setenv(name, value, 1);
    }
    memset(value, 'y', 20000 + pad);
    value[20000 + pad] = 0;
    setenv("SERVICE_LONG", value, 1);
    setenv("SUTLER_ON_ERROR", "report", 1); /* the last one */
}

int main(int argc, char **argv)
{
    char value[16];
    if (argc > 1 && strcmp(argv[1], "look") == 0)
        return sutler_option_get("on_error", value, sizeof value) == 0 && strcmp(value, "report") == 0 ? 0 : 1;
    test_begin(60);
    if (!test_is_sutler())
        SKIP("another malloc");
    unsetenv("SUTLER_ON_ERROR");
    for (pad = 0; pad < 60; pad++)
        CHECK_MSG(again(make_large, "look") == 0, "an option in an environment of 300 KiB was not heard (pad %zu)",
                  pad);
#ifndef STACK_END_IS_HIDDEN
    const int heard = look_without_proc();
    CHECK_MSG(heard != 1, "an option was not heard where /proc cannot be read");
    if (heard != 0)
        printf("not tried without /proc\n");
#endif
    return 0;
}
