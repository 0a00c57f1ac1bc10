/* SPDX-License-Identifier: MIT
 *
 * Why: a program that changes its effective user to and fro, as servers do for each request, must not pay for a manager
 * that is stopped and started each time: parked, it stays away for a while.  What is counted is managers, not time.
 */
#include "manager/watch.h"

#define TOGGLES 400

static void toggles(uint64_t seed)
{
    struct rng rng = {seed};
    if (geteuid() != 0)
        SKIP("needs root");
    pid_t last = manager_start(&rng);
    int managers = 0;
    uint64_t start = now_ms();
    for (int i = 0; i < TOGGLES; i++) {
        CHECK(seteuid(65534) == 0 && seteuid(0) == 0);
        hoard_grow(&rng, 256 * KIB); /* slow paths, each of which could start one */
        sleep_us(1000);
        pid_t manager = manager_of(getpid());
        managers += manager != 0 && manager != last;
        last = manager != 0 ? manager : last;
        if (i % 50 == 49)
            hoard_drop(3);
    }
    uint64_t passed = now_ms() - start;
    CHECK_MSG((uint64_t)managers <= passed / 250 + 1, "%d managers in %llu ms", managers, (unsigned long long)passed);
    manager_awaited(&rng);
    hoard_check();
}

int main(int argc, char **argv)
{
    test_begin(100);
    static const struct manager_case cases[] = {{"toggles", toggles}};
    return cases_run(argc, argv, cases, 1);
}
