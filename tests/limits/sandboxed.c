/* SPDX-License-Identifier: MIT
 *
 * A program that locks itself in after the manager has started: the filter it installs ends the process at the first
 * system call only a manager would make.  Once the filter is there, there must be no manager, however much is allocated
 * and freed.  `prctl`, `syscall`: how the filter is installed.
 */
#include "support/check.h"
#include "support/proc.h"
#include <dirent.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static int tasks(void)
{
    char text[8192];
    proc_read("/proc/self/status", text, sizeof text);
    const char *row = strstr(text, "\nThreads:");
    CHECK(row != NULL);
    return atoi(row + 9);
}

/* Slow paths enough to start or wake a manager. */
static void churn(void)
{
    enum { COUNT = 64 };
    static char *block[COUNT];
    for (int i = 0; i < COUNT; i++)
        CHECK((block[i] = malloc(MIB)) != NULL);
    for (int round = 0; round < 20; round++)
        for (int i = 0; i < COUNT; i++) {
            memset(block[i], round, 4096);
            free(block[i]);
            CHECK((block[i] = malloc(MIB - (size_t)(round * 65536 % 500000))) != NULL);
        }
    for (int i = 0; i < COUNT; i++)
        free(block[i]);
}

#define KILL_ON(number)                                                                                                \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)

int main(int argc, char **argv)
{
    test_begin(60);
    CHECK_MSG(argc == 2, "usage: %s prctl|syscall", argv[0]);
    churn();
    for (int i = 0; i < 100 && tasks() == 1; i++)
        sleep_us(10000);
    if (tasks() == 1)
        SKIP("the manager does not start here");
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        KILL_ON(SYS_clone),
        KILL_ON(SYS_close_range),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof filter[0], filter};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    churn(); /* and so there is one again */
    bool by_prctl = strcmp(argv[1], "prctl") == 0;
    if (by_prctl ? prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0
                 : syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) != 0)
        SKIP("seccomp filters are not to be had here: errno %d", errno);
    CHECK_MSG(tasks() == 1, "%d threads under the filter", tasks());
    churn();
    sleep_us(50000);
    churn();
    CHECK_MSG(tasks() == 1, "%d threads under the filter after a while", tasks());
    malloc_trim(0); /* done inline */
    return 0;
}
