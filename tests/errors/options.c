/* SPDX-License-Identifier: MIT
 *
 * A program that only allocates, in threads and a fork child: under a wrong option value its stderr must hold one
 * warning, not one per thread, process or call.
 */
#include "support/check.h"
#include <pthread.h>
#include <sys/wait.h>

static void *use(void *argument)
{
    for (int i = 0; i < 1000; i++)
        free(malloc((size_t)i * 100));
    return argument;
}

int main(void)
{
    test_begin(60);
    for (int i = 0; i < 4; i++) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, use, NULL) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
    }
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        use(NULL);
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    test_say("survived\n");
    return 0;
}
