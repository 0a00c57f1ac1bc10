/* SPDX-License-Identifier: MIT
 *
 * Runs the test's own program once more, with other words and another environment, and waits for it.
 */
#ifndef TESTS_AGAIN_H
#define TESTS_AGAIN_H

#include "support/check.h"
#include <sys/wait.h>

/* `prepare` (may be NULL) is called in the child first.  Its wait status. */
static inline int again(void (*prepare)(void), const char *word)
{
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        if (prepare != NULL)
            prepare();
        execl("/proc/self/exe", "again", word, NULL);
        _exit(99);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    return status;
}

#endif
