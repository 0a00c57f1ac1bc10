/* SPDX-License-Identifier: MIT
 *
 * Signal handlers that call the same function, often, while the thread is predicted for: both get right answers.  A
 * handler that leaves by siglongjmp, or forks, does no harm either.  And no handler starts the second thread: before
 * main has called, a handler may call as often as it likes.
 */
#include "predicted.h"

#include <pthread.h>
#include <setjmp.h>
#include <sys/time.h>
#include <sys/wait.h>

static struct cycle in_handler;
static volatile sig_atomic_t fired, leave, fork_now;
static sigjmp_buf way_out;

static void tick_every(long us)
{
    struct itimerval timer = {{0, us}, {0, us}};
    CHECK(setitimer(ITIMER_PROF, &timer, NULL) == 0);
}

static void handler(int number)
{
    (void)number;
    int saved = errno;
    fired++;
    cycle_calls(&in_handler, 5);
    if (fork_now) {
        fork_now = 0;
        pid_t child = fork();
        if (child == 0) {
            alarm(60);
            cycle_calls(&in_handler, 200);
            tick_every(1000); /* timers are not inherited */
            errno = saved;
            return; /* the child goes on where the parent was */
        }
        int status;
        CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    errno = saved;
    if (leave)
        siglongjmp(way_out, 1);
}

static void handlers_start_nothing(void)
{
    for (int i = 0; i < 1000; i++)
        CHECK(raise(SIGPROF) == 0);
    CHECK_MSG(threads_now() == 1, "a handler started a thread");
}

static void calls_under_fire(struct cycle *cycle, sig_atomic_t times)
{
    sig_atomic_t end = fired + times;
    while (fired < end)
        cycle_calls(cycle, 100);
}

int main(int argc, char **argv)
{
    test_begin(200);
    sig_atomic_t times = (sig_atomic_t)test_option(argc, argv, "--times", 200);
    pid_t parent = getpid();
    struct cycle cycle;
    cycle_begin(&cycle, test_seed_from(NULL));
    cycle_begin(&in_handler, 7);
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    CHECK(sigaction(SIGPROF, &action, NULL) == 0);
    handlers_start_nothing();
    cycle_until_hit(&cycle);
    tick_every(1000);
    calls_under_fire(&cycle, times);
    for (int i = 0; i < 10; i++) {
        fork_now = 1;
        calls_under_fire(&cycle, 3);
        if (getpid() != parent) {
            cycle_calls(&cycle, 3000);
            _exit(0);
        }
    }
    tick_every(0);
    cycle_until_hit(&cycle);
    tick_every(1000);
    volatile int out = 0;
    leave = 1;
    (void)sigsetjmp(way_out, 1);
    while (out < times / 4) {
        out++;
        for (;;)
            cycle_call(&cycle);
    }
    leave = 0;
    tick_every(0);
    cycle_calls(&cycle, 1000);
    return 0;
}
