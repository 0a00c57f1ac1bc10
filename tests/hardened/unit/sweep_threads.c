/* SPDX-License-Identifier: MIT
 *
 * Pointers that threads have to the freed block: on their stacks, in what is local to them, and in registers, of the
 * thread that sweeps and of others, awake or asleep, and when the first thread has ended.
 */
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "sweep.h"

static __thread void *volatile thread_local;

atomic_int ready, leave;

void await(atomic_int *flag)
{
    while (!atomic_load(flag))
        usleep(1000);
}

static pthread_t leader;

static void *without_leader(void *unused)
{
    pthread_join(leader, NULL);
    keep_in(&zeroed_global, 0);
    void *volatile here = unused;
    keep_in(&here, 0);
    _exit(0);
}

/* The first thread has ended: of its own memory the system shows nothing. */
void leader_gone(void)
{
    pthread_t thread;
    leader = pthread_self();
    expect(pthread_create(&thread, NULL, without_leader, NULL) == 0, "a thread");
    pthread_exit(NULL);
}

static void with_thread(void *(*work)(void *))
{
    pthread_t thread;
    take_block();
    pthread_create(&thread, NULL, work, NULL);
    await(&ready);
    free_block();
    expect_kept();
    atomic_store(&leave, 1);
    pthread_join(thread, NULL);
    expect_free();
    atomic_store(&ready, 0);
    atomic_store(&leave, 0);
}

void *on_its_stack(void *unused)
{
    void *volatile here;
    put(&here, 0);
    atomic_store(&ready, 1);
    await(&leave);
    here = unused;
    return NULL;
}

static void *in_its_thread_local(void *unused)
{
    put(&thread_local, 0);
    atomic_store(&ready, 1);
    await(&leave);
    thread_local = unused;
    return NULL;
}

/* All signals that libc lets anybody block. */
static void *with_signals_blocked(void *unused)
{
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
    return on_its_stack(unused);
}

#if defined(__x86_64__)
static void *in_a_register(void *unused)
{
    int *flag = (int *)&leave, *tell = (int *)&ready;
    __asm__ volatile("movq %0, %%r12\n\tnotq %%r12\n\tmovl $1, (%2)\n"
                     "1:\tpause\n\tcmpl $0, (%1)\n\tje 1b\n\txorl %%r12d, %%r12d"
                     :
                     : "r"(hidden), "r"(flag), "r"(tell)
                     : "r12", "memory", "cc");
    wash_stack();
    return unused;
}

/* The same asleep in a system call. */
static void *in_a_register_asleep(void *unused)
{
    static const struct timespec moment = {0, 50000000};
    int *flag = (int *)&leave, *tell = (int *)&ready;
    __asm__ volatile("movq %0, %%r12\n\tnotq %%r12\n\tmovl $1, (%2)\n"
                     "1:\tmovl $35, %%eax\n\tmovq %3, %%rdi\n\txorl %%esi, %%esi\n\tsyscall\n\t"
                     "cmpl $0, (%1)\n\tje 1b\n\txorl %%r12d, %%r12d"
                     :
                     : "r"(hidden), "r"(flag), "r"(tell), "r"(&moment)
                     : "r12", "rax", "rdi", "rsi", "rcx", "r11", "memory", "cc");
    wash_stack();
    return unused;
}

/* And in a vector register. */
static void *in_a_vector(void *unused)
{
    int *flag = (int *)&leave, *tell = (int *)&ready;
    __asm__ volatile("movq %0, %%r12\n\tnotq %%r12\n\tmovq %%r12, %%xmm7\n\txorl %%r12d, %%r12d\n\tmovl $1, (%2)\n"
                     "1:\tpause\n\tcmpl $0, (%1)\n\tje 1b\n\tpxor %%xmm7, %%xmm7"
                     :
                     : "r"(hidden), "r"(flag), "r"(tell)
                     : "r12", "xmm7", "memory", "cc");
    wash_stack();
    return unused;
}
#endif

void threads(void)
{
    with_thread(on_its_stack);
    with_thread(in_its_thread_local);
    with_thread(with_signals_blocked);
}

void registers(void)
{
#if defined(__x86_64__)
    bool found;
    take_block(); /* of the thread that sweeps itself */
    free_block();
    __asm__ volatile("movq %1, %%rbx\n\tnotq %%rbx\n\tcall *%2\n\txorl %%ebx, %%ebx"
                     : "=a"(found)
                     : "m"(hidden), "r"(is_handed_out)
                     : "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory", "cc");
    expect(!found, "a block was handed out to which a register points");
    expect_free();
    with_thread(in_a_register);
    with_thread(in_a_register_asleep);
    with_thread(in_a_vector);
#endif
}
