/* SPDX-License-Identifier: MIT
 *
 * ENOMEM at the n-th system call, for every n.
 *
 * A tracer runs the workload under the library and turns one memory call (mmap, mremap, madvise, mprotect, brk) into a
 * refused one: the n-th, for n = 1, 2, ... until a run makes fewer calls than n.  The workload must live with every
 * single one: NULL and ENOMEM where memory was asked for, no damage, all memory to be had again later.  With --onward
 * every call from the n-th on is refused until the tampered phase ends: the longest drought.  --step N takes every N-th
 * n. --start tampers from exec on, so that the library's own start-up meets the refusal.  The loader and the C library
 * may then end the program, by a word or by a crash of their own; the library may not: a wild access is blamed on whose
 * code the instruction belongs to. x86-64 only: on other machines the registers to change have other names.
 */
#include "support/check.h"
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>

#if !defined(__x86_64__)
int main(void)
{
    SKIP("the tracer knows x86-64 registers only");
}
#else

static bool is_memory_call(unsigned long long number)
{
    switch (number) {
    case SYS_mmap:
    case SYS_mremap:
    case SYS_madvise:
    case SYS_mprotect:
    case SYS_brk:
        return true;
    default:
        return false;
    }
}

struct outcome {
    int status;
    uint64_t calls;         /* memory calls in the tampered phase */
    unsigned long long hit; /* number of the call that was refused first */
    bool library_crashed;   /* a wild access by an instruction of the preloaded library */
};

static pid_t start(char **command, const char *preload)
{
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        if (preload != NULL)
            setenv("LD_PRELOAD", preload, 1);
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
            _exit(TEST_SKIPPED);
        raise(SIGSTOP);
        execv(command[0], command);
        _exit(126);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    if (!WIFSTOPPED(status))
        SKIP("ptrace is not allowed here");
    CHECK(ptrace(PTRACE_SETOPTIONS, child, NULL,
                 (void *)(PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL | PTRACE_O_TRACECLONE)) == 0);
    CHECK(ptrace(PTRACE_SYSCALL, child, NULL, NULL) == 0);
    return child;
}

/* A stopped thread is stopped no longer when another one of its process ends the process: then there is nobody to ask
 * or to tell, and the next wait says so.  That is false; any other failure is the test's. */
static bool is_there(long result)
{
    CHECK(result == 0 || errno == ESRCH);
    return result == 0;
}

static bool get(pid_t thread, struct user_regs_struct *registers)
{
    return is_there(ptrace(PTRACE_GETREGS, thread, NULL, registers));
}

static bool set(pid_t thread, struct user_regs_struct *registers)
{
    return is_there(ptrace(PTRACE_SETREGS, thread, NULL, registers));
}

/* At a system call's entry: decides, and makes the kernel run a call that does not exist instead. */
static bool refuse_here(pid_t thread, unsigned long long *argument, struct outcome *outcome, int *phase, uint64_t nth,
                        bool onward)
{
    struct user_regs_struct registers;
    if (!get(thread, &registers))
        return false;
    if (registers.orig_rax == SYS_getpriority && registers.rdi == 0xE0E0)
        *phase = (int)registers.rsi;
    if (*phase != 1 || !is_memory_call(registers.orig_rax))
        return false;
    outcome->calls++;
    if (outcome->calls != nth && !(onward && outcome->calls > nth))
        return false;
    if (outcome->hit == 0)
        outcome->hit = registers.orig_rax;
    *argument = registers.rdi;
    if (registers.orig_rax == SYS_brk) {
        /* brk refuses by answering with the break as it was, never with an error number: ask it for nothing. */
        registers.rdi = 0;
    } else {
        registers.orig_rax = (unsigned long long)-1;
    }
    return set(thread, &registers);
}

/* At the exit of a refused call: the answer, and the argument registers as the program left them. */
static void answer(pid_t thread, unsigned long long argument)
{
    struct user_regs_struct registers;
    if (!get(thread, &registers))
        return;
    if (registers.orig_rax != SYS_brk)
        registers.rax = (unsigned long long)-ENOMEM;
    registers.rdi = argument;
    set(thread, &registers);
}

/* Threads the workload may have at once: itself, its helper, the library's manager. */
struct traced {
    pid_t id;
    bool inside; /* between the entry and the exit stop of a call */
    bool refused;
    unsigned long long argument; /* the refused call's first */
};

static struct traced *find(struct traced *threads, pid_t id)
{
    struct traced *unused = NULL;
    for (int i = 0; i < 32; i++) {
        if (threads[i].id == id)
            return &threads[i];
        if (threads[i].id == 0)
            unused = &threads[i];
    }
    CHECK_MSG(unused != NULL, "too many threads");
    *unused = (struct traced){.id = id};
    return unused;
}

/* Whether the thread's next instruction lies in a mapping of the file `library`. */
static bool is_in_library(pid_t thread, const char *library)
{
    if (library == NULL)
        return true;
    struct user_regs_struct registers;
    if (!get(thread, &registers))
        return false;
    char path[64], row[1024];
    snprintf(path, sizeof path, "/proc/%d/maps", thread);
    FILE *maps = fopen(path, "r");
    bool found = false;
    while (maps != NULL && fgets(row, sizeof row, maps) != NULL) {
        unsigned long long from, to;
        if (sscanf(row, "%llx-%llx", &from, &to) == 2 && registers.rip >= from && registers.rip < to)
            found = strstr(row, library) != NULL;
    }
    if (maps != NULL)
        fclose(maps);
    return found;
}

static struct outcome run(char **command, const char *preload, uint64_t nth, bool onward, bool from_start)
{
    struct outcome outcome = {0, 0, 0, false};
    struct traced threads[32] = {{.id = 0}};
    int phase = from_start ? 1 : 0;
    pid_t child = start(command, preload);
    for (;;) {
        int status;
        pid_t id = waitpid(-1, &status, __WALL);
        CHECK(id > 0);
        if (WIFEXITED(status) || WIFSIGNALED(status)) {
            find(threads, id)->id = 0; /* it may be another's soon */
            if (id != child)
                continue;
            outcome.status = status;
            return outcome;
        }
        struct traced *thread = find(threads, id);
        long deliver = 0;
        if (WSTOPSIG(status) == (SIGTRAP | 0x80)) {
            if (!thread->inside)
                thread->refused = refuse_here(id, &thread->argument, &outcome, &phase, nth, onward);
            else if (thread->refused)
                answer(id, thread->argument);
            thread->inside = !thread->inside;
        } else if (WSTOPSIG(status) != SIGTRAP && WSTOPSIG(status) != SIGSTOP) {
            deliver = WSTOPSIG(status);
            if (deliver == SIGSEGV || deliver == SIGBUS || deliver == SIGILL)
                outcome.library_crashed = is_in_library(id, preload);
        }
        ptrace(PTRACE_SYSCALL, id, NULL, (void *)deliver);
    }
}

int main(int argc, char **argv)
{
    test_watchdog(900);
    bool onward = argc >= 2 && strcmp(argv[1], "--onward") == 0;
    bool from_start = argc >= 2 && strcmp(argv[1], "--start") == 0;
    uint64_t step = test_option(argc, argv, "--step", 1);
    char *command[] = {argv[argc - 1], NULL};
    const char *preload = getenv("TEST_LIBRARY");
    uint64_t n = 1, runs = 0;
    for (;; n += step, runs++) {
        struct outcome outcome = run(command, preload, n, onward, from_start);
        CHECK_MSG(!WIFEXITED(outcome.status) || WEXITSTATUS(outcome.status) != 126, "cannot start %s", command[0]);
        if (from_start && !outcome.library_crashed)
            outcome.status = 0;
        CHECK_MSG(outcome.status == 0, "refusing memory call %llu%s (number %llu): wait status 0x%x",
                  (unsigned long long)n, onward ? " and all after it" : "", outcome.hit, (unsigned)outcome.status);
        if (outcome.calls < n || (from_start && n >= 200))
            break;
    }
    test_say("%llu runs, up to %llu memory calls\n", (unsigned long long)runs, (unsigned long long)n - 1);
    CHECK_MSG(runs > 1, "the workload made no memory call: nothing was tested");
    return 0;
}
#endif
