/* SPDX-License-Identifier: MIT
 *
 * The second tier: `sweep CASE`.  A block is freed while a pointer to it lies somewhere: it must not be handed out
 * again, and must be once the pointer is gone.  Here is the table of the cases; they themselves are in sweep_places.c,
 * sweep_threads.c, sweep_memory.c and sweep_limits.c.
 */
#include <sched.h>
#include <string.h>

#include "sweep.h"

#include "support/proc.h"

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } row[] = {
        {"nowhere", nowhere},
        {"global", global},
        {"interior", interior},
        {"stack", stack},
        {"heap", heap},
        {"thread_local", own_thread_local},
        {"mapping", mapping},
        {"hugetlb", hugetlb},
        {"file", file_mapping},
        {"shared", shared_mapping},
        {"protected", protected_mapping},
        {"cycle", cycle},
        {"large", large},
        {"threads", threads},
        {"registers", registers},
        {"fork", in_child},
        {"written", written},
        {"bounded", bounded},
        {"bounded_large", bounded_large},
        {"limited_large", limited_large},
        {"filtered", filtered},
        {"filtered_before", filtered_before},
        {"unstoppable", unstoppable},
        {"fork_unstoppable", fork_unstoppable},
        {"crowd", crowd},
        {"handler", handler},
        {"leader_gone", leader_gone},
        {"spread", spread},
        {"outside", outside},
        {"survivors", survivors},
    };
    cpu_set_t one; /* a block freed on one cpu may be handed out on that alone */
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    sched_setaffinity(0, sizeof one, &one);
    find_library();
    const bool is_about_filters = argc == 2 && strncmp(argv[1], "filtered", strlen("filtered")) == 0;
    if (proc_is_filtered() && !is_about_filters)
        SKIP("no sweep is possible under a seccomp filter");
    for (size_t i = 0; argc == 2 && i < sizeof row / sizeof row[0]; i++)
        if (strcmp(argv[1], row[i].name) == 0) {
            row[i].run();
            return 0;
        }
    fail("which case?");
}
