/* SPDX-License-Identifier: MIT
 *
 * Why: libcap's libpsx changes credentials as glibc does, but it asks the system for the list of threads: it sends each
 * of them signal 33 and spins until all have answered.  A thread of ours that never does stops the program for good.
 */
#include "manager/watch.h"

#define SIGNAL 33

static _Atomic int answers;

static void answer(int number)
{
    (void)number;
    answers++;
}

#if defined(__x86_64__)
extern void return_from_signal(void);
__asm__(".text\n"
        ".globl return_from_signal\n"
        "return_from_signal: mov $15, %eax\n" /* rt_sigreturn */
        "syscall\n");
#endif

/* glibc keeps this signal for itself: by the system call. */
static void handle(void)
{
    struct {
        void (*handler)(int);
        unsigned long flags;
        void (*restorer)(void);
        uint64_t mask;
    } action = {.handler = answer, .flags = SA_RESTART};
#if defined(__x86_64__)
    action.flags |= 0x04000000; /* SA_RESTORER */
    action.restorer = return_from_signal;
#endif
    CHECK(syscall(SYS_rt_sigaction, SIGNAL, &action, NULL, sizeof action.mask) == 0);
}

static void all_answer(uint64_t seed)
{
    struct rng rng = {seed};
    handle();
    manager_start(&rng);
    for (int round = 0; round < 20; round++) {
        pid_t tasks[TASKS_MOST];
        int count = tasks_of(getpid(), tasks), sent = 0;
        answers = 0;
        for (int i = 0; i < count; i++)
            sent += syscall(SYS_tgkill, getpid(), tasks[i], SIGNAL) == 0;
        while (answers < sent)
            sleep_us(100); /* the watchdog ends it */
        hoard_drop(5);
        hoard_grow(&rng, MIB);
        hoard_check();
    }
}

int main(int argc, char **argv)
{
    test_begin(60);
    static const struct manager_case cases[] = {{"all_answer", all_answer}};
    return cases_run(argc, argv, cases, 1);
}
