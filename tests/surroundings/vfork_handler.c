/* SPDX-License-Identifier: MIT
 *
 * Why: a signal handler may vfork and exec (crash reporters do).  It may have interrupted malloc where its own thread
 * holds a lock: what vfork does to the allocator must not wait for that.
 */
#include "support/pattern.h"
#include <malloc.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>

#define BLOCKS 3000

static volatile sig_atomic_t handled;

static void on_alarm(int number)
{
    int status, error = errno;
    pid_t child = vfork();
    CHECK(child >= 0);
    if (child == 0)
        _exit(number);
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == number);
    handled++;
    errno = error;
}

int main(int argc, char **argv)
{
    test_begin(120);
    static char *block[BLOCKS];
    const sig_atomic_t wanted = (sig_atomic_t)test_option(argc, argv, "--signals", 500);
    const struct itimerval often = {{0, 2000}, {0, 2000}};
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    CHECK(sigaction(SIGALRM, &action, NULL) == 0 && setitimer(ITIMER_REAL, &often, NULL) == 0);
    while (handled < wanted) {
        for (size_t i = 0; i < BLOCKS; i++) { /* most of it in slow paths, where memory is opened */
            CHECK((block[i] = malloc(1 + i % 40 * 3000)) != NULL);
            block[i][0] = (char)i;
        }
        for (size_t i = 0; i < BLOCKS; i++) {
            CHECK(block[i][0] == (char)i);
            free(block[i]);
        }
        malloc_trim(0);
    }
    return 0;
}
