/* SPDX-License-Identifier: MIT
 *
 * A program of one thread that locks itself in makes no system call that glibc's malloc would not make either: none at
 * all at the lock (seccomp's strict mode lets it read, write and leave), and where only futex is forbidden it can go on
 * with all there is.  `prctl`, `syscall`, `seccomp`: how the lock is shut.
 */
#include "support/check.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define LEFT 7 /* what the child leaves with */

static long shut(const char *way, unsigned long mode, const struct sock_fprog *program)
{
    if (strcmp(way, "prctl") == 0)
        return prctl(PR_SET_SECCOMP, mode, program, 0, 0);
    if (strcmp(way, "syscall") == 0)
        return syscall(SYS_prctl, (long)PR_SET_SECCOMP, (long)mode, (long)program, 0l, 0l, 0l);
    const long operation = mode == SECCOMP_MODE_STRICT ? SECCOMP_SET_MODE_STRICT : SECCOMP_SET_MODE_FILTER;
    return syscall(SYS_seccomp, operation, 0l, (long)program, 0l, 0l, 0l);
}

static void strictly(const char *way)
{
    void *p = malloc(100);
    free(p);
    if (shut(way, SECCOMP_MODE_STRICT, NULL) != 0)
        return;
    p = malloc(100); /* there is one of that size */
    free(p);
    syscall(SYS_exit, p != NULL ? LEFT : 1);
}

static void work(void)
{
    enum { COUNT = 3000 };
    static char *block[COUNT];
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < COUNT; i++) {
            CHECK((block[i] = malloc((size_t)i * 700)) != NULL);
            block[i][0] = 1;
        }
        for (int i = 0; i < COUNT; i++)
            free(block[i]);
    }
    malloc_trim(0);
}

static void without_futex(const char *way)
{
    struct sock_filter rows[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_futex, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof rows / sizeof rows[0], .filter = rows};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || shut(way, SECCOMP_MODE_FILTER, &program) != 0)
        return;
    work();
    _exit(LEFT);
}

static void expect_left(void (*body)(const char *way), const char *way)
{
    int status;
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        body(way);
        _exit(1);
    }
    CHECK(waitpid(child, &status, 0) == child);
    CHECK_MSG(WIFEXITED(status) && WEXITSTATUS(status) == LEFT, "status %#x", (unsigned)status);
}

int main(int argc, char **argv)
{
    test_begin(60);
    CHECK_MSG(argc == 2, "usage: %s prctl|syscall|seccomp", argv[0]);
    expect_left(strictly, argv[1]);
    expect_left(without_futex, argv[1]);
    return 0;
}
