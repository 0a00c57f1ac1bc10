/* SPDX-License-Identifier: MIT
 *
 * Why: beside a library that interposes clock_gettime (clock_guest.c) the manager, a thread libc does not know, must
 * not call it: libfaketime's crashed there.
 */
#include "manager/watch.h"
#include <malloc.h>

static void works(uint64_t seed)
{
    struct rng rng = {seed};
    for (int round = 0; round < 3; round++) {
        manager_start(&rng);
        hoard_drop(7);
        sleep_us(600000); /* it purges */
        hoard_check();
    }
    malloc_trim(0);
}

int main(int argc, char **argv)
{
    test_begin(60);
    static const struct manager_case cases[] = {{"works", works}};
    return cases_run(argc, argv, cases, 1);
}
