/* SPDX-License-Identifier: MIT
 *
 * heap_of_cid has a slot for every cid there can be, or no section may be run: it reads the table unchecked.  The
 * system may be not to be asked how many that is: then the whole table is used; and the answer may be more than the
 * table holds.  The linker wraps the question: "unknown" and "many" run the whole library with such an answer.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "os/os.h"
#include "unit.h"

unsigned __real_os_cpu_limit(void);
unsigned __wrap_os_cpu_limit(void);
unsigned __wrap_os_cpu_limit(void)
{
    const char *answer = getenv("TEST_CPU_LIMIT");
    return answer != NULL ? (unsigned)atoi(answer) : __real_os_cpu_limit();
}

/* What the real function says in a process that may not make this system call. */
static unsigned limit_without(int call)
{
    int pipes[2];
    EXPECT_EQ(pipe(pipes), 0);
    pid_t child = fork();
    EXPECT(child >= 0);
    if (child == 0) {
        struct sock_filter filter[] = {
            BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
            BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)call, 0, 1),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
            BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        };
        struct sock_fprog program = {ARRAY_LEN(filter), filter};
        unsigned limit = 12345;
        if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0)
            limit = __real_os_cpu_limit();
        EXPECT(write(pipes[1], &limit, sizeof limit) == sizeof limit);
        _exit(0);
    }
    unsigned limit = 0;
    EXPECT(read(pipes[0], &limit, sizeof limit) == sizeof limit);
    int status;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    if (limit == 12345)
        SKIP("seccomp filters are not to be had here");
    return limit;
}

static void a_cpu_is_left(void)
{
    cpu_set_t all, before, after;
    EXPECT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
    unsigned cpu = os_current_place().cpu;
    EXPECT(cpu != OS_CPU_UNKNOWN);
    os_leave_cpu(cpu);
    EXPECT(CPU_COUNT(&all) == 1 || os_current_place().cpu != cpu);
    EXPECT_EQ(sched_getaffinity(0, sizeof after, &after), 0);
    EXPECT(CPU_EQUAL(&all, &after));
    EXPECT(!os_leave_cpu(100000) && !os_leave_cpu(OS_CPU_UNKNOWN)); /* nobody runs there */
    /* The only one is not left. */
    cpu = os_current_place().cpu;
    CPU_ZERO(&before);
    CPU_SET(cpu, &before);
    EXPECT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
    cpu = os_current_place().cpu;
    EXPECT(os_leave_cpu(cpu) && !os_leave_cpu(cpu + 1));
    EXPECT_EQ(os_current_place().cpu, cpu);
    EXPECT_EQ(sched_getaffinity(0, sizeof after, &after), 0);
    EXPECT(CPU_EQUAL(&before, &after));
    EXPECT_EQ(sched_setaffinity(0, sizeof all, &all), 0);
}

int main(void)
{
    unit_print_mode();
    unit_watchdog(30);
    const char *answer = getenv("TEST_CPU_LIMIT");
    if (answer != NULL) {
        bool is_unknown = atoi(answer) == 0;
        EXPECT_EQ(slot_count, SLOT_MAX);
        EXPECT(is_unknown ? rcs_verdict != rcs_cpus_unknown : rcs_verdict == rcs_cpus_unknown && sync_mode == sync_cpu);
        for (size_t i = 1; i < 3000; i++) {
            char *p = malloc(i * 16);
            EXPECT(p != NULL);
            p[0] = p[i * 16 - 1] = 1;
            free(p);
        }
        return 0;
    }
    unsigned limit = __real_os_cpu_limit();
    EXPECT(limit >= 64 && limit % 64 == 0);
    EXPECT(limit >= (unsigned)sysconf(_SC_NPROCESSORS_CONF));
    EXPECT_EQ(limit_without(SYS_sched_getaffinity), 0);
    a_cpu_is_left();
    return 0;
}
