/* SPDX-License-Identifier: MIT
 *
 * A program that shuts itself in as a server's network part does before anybody has logged in: by an allow-list with
 * what it needs to read, write and allocate; any other call ends the process.
 *   preauth WAY WHEN LIST
 *     WAY   prctl; syscall; tsync: for all threads
 *     WHEN  early: the first thing it does; late: the heap is large, its manager and other threads are at work; raw:
 *           late, by a system call of its own, which it announces by sutler_core_calls_only()
 *     LIST  server: as such servers have it; core: what docs/security.md says a malloc is made of, and to write and
 *           end; core-CALL: without that one, which must end it
 */
#include "all_sorts.h"
#include "support/call_sets.h"
#include "support/proc.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define WORKERS 2

#define OWN(CALL)                                                                                                      \
    CALL(write) CALL(read) CALL(exit) CALL(exit_group) CALL(rt_sigprocmask) CALL(rt_sigreturn) CALL(restart_syscall)
#define SERVER(CALL)                                                                                                   \
    CALL(brk) CALL(clock_gettime) CALL(close) CALL(exit) CALL(exit_group) CALL(futex) CALL(getpid) CALL(getrandom)     \
    CALL(gettimeofday) CALL(madvise) CALL(mmap) CALL(mprotect) CALL(mremap) CALL(munmap) CALL(ppoll) CALL(read)        \
    CALL(rt_sigprocmask) CALL(rt_sigreturn) CALL(pselect6) CALL(shutdown) CALL(write) CALL(restart_syscall)
#define ROW(name) {#name, SYS_##name},
static const struct call {
    const char *name;
    unsigned number;
} core[] = {CALLS_CORE(ROW)}, own[] = {OWN(ROW)}, server[] = {SERVER(ROW)};

static struct sock_filter filter[64];
static unsigned short length;

static void allow(const struct call *call, size_t count, const char *but)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(call[i].name, but) != 0) {
            filter[length++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call[i].number, 0, 1);
            filter[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
        }
}
#define ALLOW(set, but) allow(set, sizeof(set) / sizeof(set)[0], but)

static void list(const char *name)
{
    filter[length++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    if (strcmp(name, "server") == 0) {
        ALLOW(server, "");
    } else {
        ALLOW(core, strncmp(name, "core-", 5) == 0 ? name + 5 : "");
        ALLOW(own, "");
    }
    filter[length++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
}

/* Not through libc. */
static long own_seccomp(struct sock_fprog *whole)
{
    long result = -ENOSYS;
#ifdef __x86_64__
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(SYS_seccomp), "D"(SECCOMP_SET_MODE_FILTER), "S"(0), "d"(whole)
                     : "rcx", "r11", "memory");
#else
    (void)whole;
#endif
    return result;
}

static void shut_in(const char *way, bool raw)
{
    struct sock_fprog whole = {length, filter};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    long result;
    if (raw) {
        if (sutler_core_calls_only == NULL)
            SKIP("not under this library");
        sutler_core_calls_only();
        result = own_seccomp(&whole);
    } else if (strcmp(way, "prctl") == 0) {
        result = prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &whole);
    } else {
        unsigned flags = strcmp(way, "tsync") == 0 ? SECCOMP_FILTER_FLAG_TSYNC : 0;
        result = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &whole);
    }
    if (result != 0)
        SKIP("seccomp filters are not to be had here: errno %d", errno);
}

static _Atomic bool stop;

static void *work(void *unused)
{
    while (!stop)
        all_sorts_once(2 * MIB);
    return unused;
}

static size_t pages_of(int statm)
{
    char text[128], *end;
    ssize_t n = read(statm, text, sizeof text - 1);
    CHECK(n > 0);
    text[n] = '\0';
    strtoull(text, &end, 10);
    return (size_t)strtoull(end, NULL, 10);
}

/* What is free goes back by malloc_trim under the filter as well. */
static void give_back(int before, int after)
{
    struct all_sorts all = {0};
    all_sorts_grow(&all, ALL_SORTS_SMALL);
    size_t full = pages_of(before);
    all_sorts_shrink(&all, 200);
    malloc_trim(0);
    size_t left = pages_of(after);
    CHECK_MSG(left * 2 < full, "%zu pages of %zu are left after malloc_trim", left, full);
    all_sorts_shrink(&all, 0);
}

static int threads(void)
{
    char text[8192];
    proc_read("/proc/self/status", text, sizeof text);
    const char *row = strstr(text, "\nThreads:");
    CHECK(row != NULL);
    return atoi(row + 9);
}

static void run(const char *way, const char *when, const char *name)
{
    pthread_t thread[WORKERS];
    bool late = strcmp(when, "early") != 0;
    int before = open("/proc/self/statm", O_RDONLY), after = open("/proc/self/statm", O_RDONLY);
    list(name);
    for (int i = 0; late && i < WORKERS; i++)
        CHECK(pthread_create(&thread[i], NULL, work, NULL) == 0);
    const char *manager = getenv("SUTLER_MANAGER");
    bool waits = late && manager != NULL && strcmp(manager, "on") == 0;
    for (int i = 0; late && (i == 0 || (waits && i < 100 && threads() == 1 + WORKERS)); i++) {
        all_sorts_once(ALL_SORTS_SMALL);
        sleep_us(10000);
    }
    if (waits && threads() == 1 + WORKERS)
        SKIP("the manager does not start here");
    shut_in(way, strcmp(when, "raw") == 0);
    all_sorts_once(ALL_SORTS_SMALL);
    if (!late)
        give_back(before, after);
    stop = true;
    for (int i = 0; late && i < WORKERS; i++)
        CHECK(pthread_join(thread[i], NULL) == 0);
    _exit(0);
}

int main(int argc, char **argv)
{
    CHECK_MSG(argc == 4, "usage: preauth prctl|syscall|tsync early|late|raw server|core|core-CALL");
    test_begin(100);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0)
        run(argv[1], argv[2], argv[3]);
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == TEST_SKIPPED)
        return TEST_SKIPPED;
    if (strncmp(argv[3], "core-", 5) == 0)
        CHECK_MSG(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS, "it can do without %s: status %x", argv[3] + 5,
                  (unsigned)status);
    else
        CHECK_MSG(status == 0, "ended by status %x%s", (unsigned)status,
                  WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS ? ": a call not on the list" : "");
    return 0;
}
