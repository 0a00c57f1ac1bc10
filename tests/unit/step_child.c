/* SPDX-License-Identifier: MIT
 *
 * The child of step.h: two threads that do as they are told, one step at a time.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

#include "rcs/hot.h"
#include "step.h"
#include "step_control.h"
#include "unit.h"

extern const ptrdiff_t __rseq_offset __attribute__((weak));

struct control *volatile control;

__asm__(".text\n"
        ".globl step_mark, step_mark_after\n"
        ".type step_mark, @function\n"
        "step_mark:\n"
        "	int3\n"
        "step_mark_after:\n"
        "	ret\n"
        ".size step_mark, . - step_mark\n");

static uint32_t *rseq_field(size_t offset)
{
    return (uint32_t *)((char *)own_thread_pointer() + __rseq_offset + offset);
}

static long rseq_call(int flags)
{
    for (unsigned size = 32; size <= 256; size += 32) {
        long result = syscall(SYS_rseq, rseq_field(0), size, flags, RSEQ_SIGNATURE);
        if (result == 0 || errno != EINVAL)
            return result;
    }
    return -1;
}

/* The thread goes on under the cid it has, and no section is ever aborted; the other threads stand still. */
static void rseq_leave(void)
{
    uint32_t cpu = *rseq_field(RSEQ_CPU_ID), cid = *rseq_field(RSEQ_MM_CID);
    const int unregister = 1;
    EXPECT_MSG(rseq_call(unregister) == 0, "cannot unregister rseq (errno %d)", errno);
    *rseq_field(RSEQ_CPU_ID) = cpu;
    *rseq_field(RSEQ_MM_CID) = cid;
}

static void rseq_return(void)
{
    *(uint64_t *)rseq_field(RSEQ_CS) = 0;
    EXPECT_MSG(rseq_call(0) == 0, "cannot register rseq (errno %d)", errno);
}

static void *thread_a(void *unused)
{
    (void)unused;
    control->a = (pid_t)syscall(SYS_gettid);
    if (sync_mode == sync_rcs)
        control->rseq_of_a = (uintptr_t)rseq_field(0);
    for (;;) {
        control->phase = phase_idle;
        step_mark();
        if (control->quit)
            return NULL;
        const struct step_scene *scene = &step_scene[control->scene];
        bool without = control->without_rseq && sync_mode == sync_rcs;
        scene->set();
        step_is_set();
        if (without)
            rseq_leave();
        control->phase = phase_set;
        step_mark();
        scene->perform();
        control->phase = phase_performed;
        step_mark();
        if (without)
            rseq_return();
    }
}

static void *thread_b(void *unused)
{
    (void)unused;
    control->b = (pid_t)syscall(SYS_gettid);
    for (;;) {
        step_mark();
        if (control->quit)
            return NULL;
        if (control->job == job_verify)
            step_verify();
        else
            step_intruder[control->intruder].run();
    }
}

static void on_signal(int number)
{
    (void)number;
    int saved = errno;
    step_intruder[control->intruder].run();
    errno = saved;
}

int step_cpu(void)
{
    cpu_set_t set;
    sched_getaffinity(0, sizeof set, &set);
    int cpu = 0;
    while (!CPU_ISSET(cpu, &set))
        cpu++;
    return cpu;
}

_Noreturn void step_be_child(void)
{
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
        _exit(77);
    raise(SIGSTOP);
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(step_cpu(), &set);
    sched_setaffinity(0, sizeof set, &set); /* one of the two runs at a time, with the same cid or not */
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGUSR1, &action, NULL);
    pthread_t a, b;
    step_prepare();
    EXPECT_EQ(pthread_create(&a, NULL, thread_a, NULL), 0);
    EXPECT_EQ(pthread_create(&b, NULL, thread_b, NULL), 0);
    EXPECT_EQ(pthread_join(a, NULL), 0);
    EXPECT_EQ(pthread_join(b, NULL), 0);
    _exit(0);
}
