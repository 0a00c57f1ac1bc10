/* SPDX-License-Identifier: MIT
 *
 * Why: a thread inherits the scheduling of the one that makes it.  A manager under a real-time policy could keep the
 * very program from running; and a program that makes itself nice means all of itself.
 */
#include "manager/watch.h"
#include <sched.h>
#include <sys/resource.h>

static void real_time(uint64_t seed)
{
    struct rng rng = {seed};
    struct sched_param priority = {.sched_priority = 1};
    if (sched_setscheduler(0, SCHED_FIFO, &priority) != 0)
        SKIP("real-time scheduling is not to be had here: errno %d", errno);
    pid_t manager = manager_start(&rng); /* its name comes after what it gives up */
    sleep_us(50000);
    int policy = sched_getscheduler(manager);
    CHECK_MSG(policy == SCHED_OTHER || (policy < 0 && errno == ESRCH), "the manager runs under policy %d", policy);
}

static void follows_nice(uint64_t seed)
{
    struct rng rng = {seed};
    const int before = getpriority(PRIO_PROCESS, 0), nicer = before + 3;
    if (nicer > 19)
        SKIP("the test is as nice as can be");
    manager_start(&rng);
    CHECK(setpriority(PRIO_PROCESS, 0, nicer) == 0);
    for (int i = 0; i < 1000; i++) {
        pid_t manager = manager_of(getpid());
        errno = 0;
        if (manager != 0 && getpriority(PRIO_PROCESS, (id_t)manager) == nicer && errno == 0)
            return;
        hoard_drop(0);
        hoard_grow(&rng, START_BYTES);
        sleep_us(5000);
    }
    CHECK_MSG(false, "the manager does not become nice");
}

int main(int argc, char **argv)
{
    test_begin(100);
    static const struct manager_case cases[] = {{"real_time", real_time}, {"follows_nice", follows_nice}};
    return cases_run(argc, argv, cases, 2);
}
