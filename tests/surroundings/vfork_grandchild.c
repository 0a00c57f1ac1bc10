/* SPDX-License-Identifier: MIT
 *
 * Why: the child of a vfork may fork (a double fork, daemon()), and that child goes on without exec.  The system keeps
 * no restartable sections for it, for it kept none for the one that forked: a signal handler that allocates in the
 * middle of malloc would be handed the same block.
 */
#include "support/pattern.h"
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>

#define BLOCKS 64
#define BYTES  100u

static volatile sig_atomic_t handled;

static void on_alarm(int number)
{
    char *block[8];
    for (size_t i = 0; i < 8; i++) {
        CHECK((block[i] = malloc(BYTES)) != NULL);
        pattern_fill(block[i], BYTES, (uint64_t)number + i);
    }
    for (size_t i = 0; i < 8; i++) {
        pattern_verify(block[i], BYTES, (uint64_t)number + i);
        free(block[i]);
    }
    handled++;
}

static void allocate_beside_handlers(sig_atomic_t wanted)
{
    static char *block[BLOCKS];
    const struct itimerval often = {{0, 200}, {0, 200}};
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    CHECK(sigaction(SIGALRM, &action, NULL) == 0 && setitimer(ITIMER_REAL, &often, NULL) == 0);
    for (uint64_t round = 1000; handled < wanted; round += BLOCKS) {
        for (size_t i = 0; i < BLOCKS; i++) {
            CHECK((block[i] = malloc(BYTES)) != NULL);
            pattern_fill(block[i], BYTES, round + i);
        }
        for (size_t i = 0; i < BLOCKS; i++) {
            pattern_verify(block[i], BYTES, round + i);
            free(block[i]);
        }
    }
}

int main(int argc, char **argv)
{
    test_begin(120);
    const sig_atomic_t wanted = (sig_atomic_t)test_option(argc, argv, "--signals", 5000);
    free(malloc(BYTES));
    int status;
    volatile int end = -1;
    pid_t child = vfork();
    CHECK(child >= 0);
    if (child == 0) {
        pid_t grandchild = fork();
        if (grandchild == 0) {
            allocate_beside_handlers(wanted);
            _exit(0);
        }
        if (grandchild > 0 && waitpid(grandchild, &status, 0) == grandchild)
            end = status;
        _exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status));
    CHECK_MSG(end == 0, "the child of a vfork's child ended with status %#x", (unsigned)end);
    allocate_beside_handlers(wanted / 10); /* and here all is as before */
    return 0;
}
