/* SPDX-License-Identifier: MIT
 *
 * A control group of 530 MiB: a buffer of 400 MiB is freed, and one of 500 taken and filled; beside it three loops want
 * the processors, so that whoever is to give the first back may come late.  What is freed must not count against the
 * limit: the system's malloc, which unmaps it in free, lives.  (The quick form has half of everything.)
 *
 *   kept     a buffer small enough to be kept, then one that leaves room for nothing else
 *   never    the manager does not get a processor at all: a tracer holds it
 *   leaves   such a pair, by a process that has just started; in the long form
 */
#include "manager/watch.h"
#include "support/cgroup.h"
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>

enum { way_kept, way_never, way_leaves, ways };

#define WATCHER 90 /* the descriptor by which it is told */

static size_t percent;

static void fill(size_t mib)
{
    size_t bytes = mib * MIB / 100 * percent;
    char *p = malloc(bytes);
    CHECK(p != NULL);
    memset(p, 1, bytes);
    free(opaque(p));
}

static int program(uint64_t way)
{
    fill(way == way_kept ? 100 : 400);
    if (way == way_never) {
        char byte = 0; /* whoever watches holds the manager meanwhile */
        CHECK(write(WATCHER, &byte, 1) == 1 && read(WATCHER, &byte, 1) == 1);
        fill(400);
    }
    fill(500);
    return 0;
}

static pid_t busy_loop(void)
{
    pid_t loop = fork();
    CHECK(loop >= 0);
    if (loop == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (volatile uint64_t i = 0;; i++)
            continue;
    }
    return loop;
}

/* Asleep until it is woken: it holds no lock. */
static bool is_asleep(pid_t pid, pid_t task)
{
    char text[256];
    if (task_read(pid, task, "syscall", text, sizeof text) == 0)
        return false;
    long number = strtol(text, NULL, 10);
    return number == SYS_futex || number == 449; /* futex_waitv */
}

/* Stops the manager of a program while it sleeps, until it ends or the program is killed. */
static void hold_manager(pid_t pid)
{
    for (int i = 0; i < 5000; i++) {
        sleep_us(1000);
        pid_t manager = manager_of(pid);
        if (manager == 0 || !is_asleep(pid, manager) || ptrace(PTRACE_SEIZE, manager, NULL, NULL) != 0)
            continue;
        if (ptrace(PTRACE_INTERRUPT, manager, NULL, NULL) == 0 && waitpid(manager, NULL, __WALL) == manager &&
            is_asleep(pid, manager))
            return;
        ptrace(PTRACE_DETACH, manager, NULL, NULL);
    }
    test_say("no manager to hold\n");
}

/* Whether it was killed. */
static bool run(const char *self, uint64_t way)
{
    char number[8], share[8];
    snprintf(number, sizeof number, "%d", (int)way);
    snprintf(share, sizeof share, "%d", (int)percent);
    int ends[2];
    char byte;
    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        dup2(ends[1], WATCHER);
        group_enter();
        execl(self, self, "--program", "1", "--way", number, "--percent", share, NULL);
        _exit(99);
    }
    close(ends[1]);
    if (read(ends[0], &byte, 1) == 1) {
        hold_manager(child);
        CHECK(write(ends[0], &byte, 1) == 1);
    }
    close(ends[0]);
    int status;
    while (waitpid(-1, &status, __WALL) != child) /* the manager ends first */
        continue;
    CHECK_MSG(status == 0 || (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL), "status 0x%x", (unsigned)status);
    return status != 0;
}

int main(int argc, char **argv)
{
    percent = test_option(argc, argv, "--percent", 50);
    if (test_option(argc, argv, "--program", 0) != 0)
        return program(test_option(argc, argv, "--way", 0));
    test_begin((unsigned)test_option(argc, argv, "--seconds", 110));
    uint64_t rounds = test_option(argc, argv, "--rounds", 1);
    if (!group_make(530 * MIB / 100 * percent))
        SKIP("no control group with a memory limit can be made here");
    unsigned killed[ways] = {0};
    for (uint64_t way = 0; way < (rounds > 1 ? ways : way_leaves); way++)
        for (uint64_t round = 0; round < rounds; round++) {
            pid_t loop[3];
            for (int i = 0; i < 3; i++)
                loop[i] = busy_loop();
            killed[way] += run(argv[0], way);
            for (int i = 0; i < 3; i++) {
                kill(loop[i], SIGKILL);
                waitpid(loop[i], NULL, 0);
            }
        }
    group_remove();
    CHECK_MSG(killed[0] + killed[1] + killed[2] == 0, "of %d runs each, killed for memory: %u (kept), %u (never), %u",
              (int)rounds, killed[way_kept], killed[way_never], killed[way_leaves]);
    return 0;
}
