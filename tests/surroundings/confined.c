/* SPDX-License-Identifier: MIT
 *
 * Runs a program under a filter that ends the process at every system call not on the list, from the first instruction
 * of the program on.
 *   confined CALLS PROGRAM ARGS...
 * CALLS, separated by commas: names of sets (support/call_sets.h; `program`: what libc and the test programs call
 * themselves), of single calls, numbers; with a minus in front, taken away again.
 * TEST_LIBRARY is preloaded into the program.
 */
#include "support/call_sets.h"
#include "support/check.h"
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
#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif
#ifndef SYS_rseq
#ifdef __x86_64__
#define SYS_rseq 334
#else
#define SYS_rseq 293
#endif
#endif

/* The loader, libc's start, threads and fork; and what the programs do besides allocating. */
#define CALLS_PROGRAM(CALL)                                                                                            \
    CALL(execve) CALL(brk) CALL(set_tid_address) CALL(set_robust_list) CALL(rseq) CALL(prlimit64) CALL(openat)         \
    CALL(read) CALL(pread64) CALL(close) CALL(faccessat) CALL(newfstatat) CALL(fstat) CALL(mmap) CALL(munmap)          \
    CALL(mprotect) CALL(futex) CALL(clone) CALL(clone3) CALL(wait4) CALL(exit) CALL(exit_group) CALL(write)            \
    CALL(rt_sigaction) CALL(rt_sigprocmask) CALL(rt_sigreturn) CALL(nanosleep) CALL(clock_nanosleep) CALL(setitimer)   \
    CALL(gettid) CALL(getpid) CALL(tgkill) CALL(restart_syscall) CALL(sched_getaffinity)
#ifdef __x86_64__
#define CALLS_PROGRAM_HERE(CALL) CALLS_PROGRAM(CALL) CALL(arch_prctl) CALL(access) CALL(alarm)
#else
#define CALLS_PROGRAM_HERE(CALL) CALLS_PROGRAM(CALL)
#endif

#define ROW(name) {#name, SYS_##name},
struct call {
    const char *name;
    long number;
};
static const struct call core[] = {CALLS_CORE(ROW)}, start[] = {CALLS_START(ROW)}, report[] = {CALLS_REPORT(ROW)},
                         plain[] = {CALLS_PLAIN(ROW)}, luxuries[] = {CALLS_LUXURIES(ROW)},
                         manager[] = {CALLS_MANAGER(ROW)}, program[] = {CALLS_PROGRAM_HERE(ROW)};
#define SET(name) {#name, name, sizeof name / sizeof name[0]}
static const struct {
    const char *name;
    const struct call *call;
    size_t count;
} sets[] = {SET(core), SET(start), SET(report), SET(plain), SET(luxuries), SET(manager), SET(program)};
#define SET_COUNT (sizeof sets / sizeof sets[0])

#define NUMBERS 1024
static bool allowed[NUMBERS];

static void choose(const char *name, bool allow)
{
    char *end;
    bool any = false;
    unsigned long number = strtoul(name, &end, 10);
    if (*end == '\0' && number < NUMBERS) {
        allowed[number] = allow;
        return;
    }
    for (size_t s = 0; s < SET_COUNT; s++)
        for (size_t i = 0; i < sets[s].count; i++)
            if (strcmp(sets[s].name, name) == 0 || strcmp(sets[s].call[i].name, name) == 0) {
                CHECK(sets[s].call[i].number < NUMBERS);
                allowed[sets[s].call[i].number] = allow;
                any = true;
            }
    CHECK_MSG(any, "no such set or call: %s", name);
}

static void install(void)
{
    static struct sock_filter filter[2 * NUMBERS + 2];
    unsigned short length = 0;
    filter[length++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (unsigned number = 0; number < NUMBERS; number++)
        if (allowed[number]) {
            filter[length++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1);
            filter[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
        }
    filter[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    struct sock_fprog whole = {length, filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &whole) != 0)
        SKIP("seccomp filters are not to be had here: errno %d", errno);
}

int main(int argc, char **argv)
{
    CHECK_MSG(argc >= 3, "usage: confined SET|CALL|NUMBER|-CALL[,...] PROGRAM ARGS");
    for (char *name = strtok(argv[1], ","); name != NULL; name = strtok(NULL, ","))
        choose(*name == '-' ? name + 1 : name, *name != '-');
    const char *preload = getenv("TEST_LIBRARY");
    if (preload != NULL)
        setenv("LD_PRELOAD", preload, 1);
    install();
    execvp(argv[2], argv + 2);
    FAIL("cannot start %s: errno %d", argv[2], errno);
}
