/* SPDX-License-Identifier: MIT
 *
 * Why: the end of a process's first thread wakes one sleeper on the word the kernel clears then.  A manager that sleeps
 * on that word too must not be the only one to hear of it: pthread_join of the first thread would wait for ever.
 */
#include "manager/watch.h"
#include <pthread.h>

static pthread_t first;
static _Atomic bool go;

static void *join_first(void *unused)
{
    (void)unused;
    while (!go)
        sleep_us(1000);
    CHECK(pthread_join(first, NULL) == 0);
    _exit(0);
}

static void joined(uint64_t seed)
{
    struct rng rng = {seed};
    pthread_t joiner;
    first = pthread_self();
    CHECK(pthread_create(&joiner, NULL, join_first, NULL) == 0);
    pid_t manager = manager_start(&rng);
    hoard_drop(0);
    task_settled(getpid(), manager); /* it sleeps for good */
    go = true;
    sleep_us(300000); /* behind the manager, which slept first */
    syscall(SYS_exit, 0); /* as pthread_exit, which would allocate and so wake the manager */
}

int main(int argc, char **argv)
{
    test_begin(100);
    static const struct manager_case cases[] = {{"joined", joined}};
    return cases_run(argc, argv, cases, 1);
}
