/* SPDX-License-Identifier: MIT
 *
 * What a program denies itself: memory, of which it hears nothing, since the results are right; and opening files, once
 * the second thread works.
 */
#include "predicted.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

/* All threads: who opens a file now ends the process. */
static void forbid_files(void)
{
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {sizeof steps / sizeof steps[0], steps};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter) != 0)
        SKIP("no seccomp here\n");
}

static void files_are_not_needed(void)
{
    struct cycle cycle;
    cycle_begin(&cycle, 3);
    cycle_until_hit(&cycle);
    uint64_t before = counts_of("sin").hits;
    forbid_files();
    for (int i = 0; i < 10000; i++) { /* some tenths of a second: every 10 ms it looks how busy it is */
        cycle_calls(&cycle, 100);
        sutler_predict_settle("sin", 1);
    }
    CHECK(counts_of("sin").hits > before);
}

static void no_memory_is_no_error(void)
{
    struct rlimit before, tight;
    unsigned long pages;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file != NULL && fscanf(file, "%lu", &pages) == 1 && fclose(file) == 0);
    CHECK(getrlimit(RLIMIT_AS, &before) == 0);
    tight = (struct rlimit){pages * (size_t)sysconf(_SC_PAGESIZE) + MIB, before.rlim_max};
    CHECK(setrlimit(RLIMIT_AS, &tight) == 0);
    errno = 0;
    CHECK(cos(0.0) == 1 && errno == 0);
    CHECK(setrlimit(RLIMIT_AS, &before) == 0);
    CHECK_MSG(counts_of("cos").off, "there was memory");
}

int main(void)
{
    test_begin(100);
    no_memory_is_no_error();
    files_are_not_needed();
    return 0;
}
