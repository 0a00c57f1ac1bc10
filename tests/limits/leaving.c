/* SPDX-License-Identifier: MIT
 *
 * A workload for the tracer (enomem.c), to test it: the process is killed while its threads are in the middle of memory
 * calls, stopped there as often as not, and gone when the tracer turns to them.
 */
#include "support/check.h"
#include "support/proc.h"
#include <pthread.h>
#include <sys/mman.h>

static void *call(void *unused)
{
    for (;;) {
        void *p = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p != MAP_FAILED)
            munmap(p, 4096);
    }
    return unused;
}

int main(void)
{
    for (int i = 0; i < 6; i++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, call, NULL) != 0)
            break;
    }
    pid_t victim = getpid(), killer = fork(); /* which is not traced */
    if (killer == 0) {
        sleep_us(3000 + (unsigned)victim % 7000);
        kill(victim, SIGKILL);
        _exit(0);
    }
    for (;;)
        call(NULL);
}
