/* SPDX-License-Identifier: MIT
 *
 * A signal handler at each single instruction of a call: its own call of the same function is the one that ends the
 * prediction and takes its memory away.  Each instruction gets a child of its own.
 */
#include "predicted.h"

#include <sys/wait.h>

#if defined(__x86_64__)

enum { CALLS_BEFORE = 62 /* of the 64 after which a cheap function is given up: the handler makes the last */ };

static volatile sig_atomic_t steps, at;
static volatile double sink;

static void handler(int number)
{
    (void)number;
    if (++steps == at) {
        sink = cos(0.25);
        sink = cos(0.25);
    }
}

#define TRAP_EACH_STEP()                                                                                               \
    __asm__ volatile("sub $128, %%rsp; pushfq; orq $0x100, (%%rsp); popfq; add $128, %%rsp" ::: "cc", "memory")
#define TRAP_NO_MORE()                                                                                                 \
    __asm__ volatile("sub $128, %%rsp; pushfq; andq $~0x100, (%%rsp); popfq; add $128, %%rsp" ::: "cc", "memory")

static void child_main(void)
{
    for (int i = 0; i < CALLS_BEFORE; i++)
        sink = cos(0.5);
    TRAP_EACH_STEP();
    double result = cos(1.0);
    TRAP_NO_MORE();
    CHECK(result > 0.54030 && result < 0.54031);
    CHECK_MSG(at > 10 || counts_of("cos").off, "the handler's call was not the last");
    _exit(steps < at); /* 1: it was over before */
}

int main(void)
{
    test_begin(200);
    CHECK(signal(SIGTRAP, handler) != SIG_ERR);
    int status = 0;
    for (at = 1; status == 0; at++) {
        pid_t child = fork();
        CHECK(child >= 0);
        if (child == 0)
            child_main();
        CHECK(waitpid(child, &status, 0) == child);
    }
    CHECK_MSG(WIFEXITED(status) && WEXITSTATUS(status) == 1, "a call at step %d: status %#x", (int)at - 1,
              (unsigned)status);
    CHECK_MSG(at > 50, "only %d steps", (int)at);
    return 0;
}

#else

int main(void)
{
    SKIP("x86-64 only\n");
}

#endif
