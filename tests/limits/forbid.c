/* SPDX-License-Identifier: MIT
 *
 * A sandbox that forbids what the library likes to use.  Installs a seccomp filter that answers the named system calls
 * with an error from the very first instruction of the program it then starts: the library must notice and do without.
 *   forbid ERRNO CALL[,CALL...] PROGRAM ARGS...     e.g. forbid EPERM madvise,membarrier ./model
 */
#include "support/check.h"
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#ifndef SYS_process_madvise
#define SYS_process_madvise 440
#endif
#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#ifndef SYS_rseq
#ifdef __x86_64__
#define SYS_rseq 334
#else
#define SYS_rseq 293
#endif
#endif

static const struct {
    const char *name;
    unsigned number;
} calls[] = {
    {"madvise", SYS_madvise},
    {"membarrier", SYS_membarrier},
    {"clone3", SYS_clone3},
    {"rseq", SYS_rseq},
    {"mremap", SYS_mremap},
    {"mincore", SYS_mincore},
    {"process_madvise", SYS_process_madvise},
    {"sched_getaffinity", SYS_sched_getaffinity},
    {"getcpu", SYS_getcpu},
    {"prctl", SYS_prctl},
    {"close_range", SYS_close_range},
};

#define FILTER_MOST 32

static int filter_of(char *list, int error, struct sock_filter *filter)
{
    int length = 0;
    filter[length++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (char *name = strtok(list, ","); name != NULL; name = strtok(NULL, ",")) {
        size_t i = 0;
        while (i < sizeof calls / sizeof calls[0] && strcmp(calls[i].name, name) != 0)
            i++;
        CHECK_MSG(i < sizeof calls / sizeof calls[0], "no such call: %s", name);
        CHECK(length + 3 < FILTER_MOST);
        filter[length++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i].number, 0, 1);
        filter[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error);
    }
    filter[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    return length;
}

int main(int argc, char **argv)
{
    CHECK_MSG(argc >= 4, "usage: forbid EPERM|ENOSYS|ENOMEM CALL[,CALL] PROGRAM ARGS");
    int error = strcmp(argv[1], "EPERM") == 0 ? EPERM : strcmp(argv[1], "ENOSYS") == 0 ? ENOSYS : ENOMEM;
    struct sock_filter filter[FILTER_MOST];
    struct sock_fprog program = {(unsigned short)filter_of(argv[2], error, filter), filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        SKIP("seccomp filters are not to be had here: errno %d", errno);
    const char *preload = getenv("TEST_LIBRARY");
    if (preload != NULL)
        setenv("LD_PRELOAD", preload, 1);
    execv(argv[3], argv + 3);
    FAIL("cannot start %s: errno %d", argv[3], errno);
}
