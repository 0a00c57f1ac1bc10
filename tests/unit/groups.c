/* SPDX-License-Identifier: MIT
 *
 * Whether the limits of the process's control groups can be read is known: in a container without /sys they cannot, and
 * that is not the same as none.
 */
#include "support/cgroup.h"

/* Of os/os.h, whose CHECK is another one. */
void os_init(void);
bool os_groups_are_known(void);

int main(int argc, char **argv)
{
    (void)argc;
    const char *manager = getenv("SUTLER_MANAGER");
    if (manager != NULL && strcmp(manager, "off") == 0) { /* without one no file is read */
        unsetenv("SUTLER_MANAGER");
        execv("/proc/self/exe", argv);
    }
    os_init();
    char rows[4096];
    if (proc_read("/proc/self/cgroup", rows, sizeof rows) <= 0 || access(CGROUPS, R_OK) != 0)
        SKIP("there are no control groups here");
    CHECK(os_groups_are_known());
    own_groups(); /* a /sys without groups: their directory is there, and nothing in it */
    CHECK(!os_groups_are_known());
    own_group_write_of(strstr(rows, ":memory:") != NULL ? 1 : 2, "memory.max", "max");
    write_file(strstr(rows, ":memory:") != NULL ? CGROUPS "/memory/cgroup.procs" : CGROUPS "/cgroup.procs", "1");
    CHECK(os_groups_are_known());
    CHECK(mount("none", "/sys", "tmpfs", 0, NULL) == 0);
    CHECK(access(CGROUPS, R_OK) != 0);
    CHECK(!os_groups_are_known());
    return 0;
}
