/* SPDX-License-Identifier: MIT
 *
 * Calls that stop the manager first, made everywhere at once: by the program, and by a signal handler that interrupts
 * the program in such a call, in the allocator, in starting the manager, in fork.  None may wait for its own thread.
 */
#include "support/check.h"
#include "support/proc.h"
#include <sys/wait.h>

static volatile unsigned long handled;

static void handler(int number)
{
    (void)number;
    int saved = errno;
    if (setegid(getegid()) == 0)
        handled++;
    errno = saved;
}

int main(int argc, char **argv)
{
    test_begin(100);
    uint64_t ms = test_option(argc, argv, "--ms", 3000);
    struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    timer_t timer;
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1};
    CHECK(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
    struct itimerspec every = {{0, 70000}, {0, 70000}};
    CHECK(timer_settime(timer, 0, &every, NULL) == 0);
    enum { COUNT = 48 };
    static char *block[COUNT];
    unsigned long rounds = 0;
    for (uint64_t end = now_ms() + ms; now_ms() < end; rounds++) {
        for (int i = 0; i < COUNT; i++) {
            free(block[i]);
            CHECK((block[i] = malloc(MIB - (rounds * 65536 + (size_t)i * 4096) % 700000)) != NULL);
        }
        CHECK(setegid(getegid()) == 0);
        if (rounds % 64 == 0) {
            pid_t child = fork();
            CHECK(child >= 0);
            if (child == 0)
                _exit(malloc(200000) == NULL);
            int status;
            while (waitpid(child, &status, 0) < 0)
                CHECK(errno == EINTR);
            CHECK(status == 0);
        }
    }
    test_say("%lu rounds, %lu handlers\n", rounds, handled);
    CHECK(handled > 100 && rounds > 10);
    return 0;
}
