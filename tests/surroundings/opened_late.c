/* SPDX-License-Identifier: MIT
 *
 * Why: a library that is opened late, by dlopen, finds the program's setuid bound to libc's: nothing parks its manager.
 * In a process with privileges there must be none, for it would keep them.  Runs without the library preloaded.
 */
#include "manager/watch.h"
#include <dlfcn.h>

int main(void)
{
    if (geteuid() != 0)
        SKIP("needs root");
    test_watchdog(60);
    void *library = dlopen(getenv("TEST_LIBRARY"), RTLD_NOW | RTLD_LOCAL);
    CHECK_MSG(library != NULL, "%s", dlerror());
    void *(*allocate)(size_t) = (void *(*)(size_t))dlsym(library, "malloc");
    CHECK(allocate != NULL && allocate != malloc);
    for (int i = 0; i < 4000; i++) {
        char *block = allocate(20000);
        CHECK(block != NULL);
        memset(block, 1, 20000);
        if (i % 400 == 399) {
            sleep_us(20000);
            CHECK_MSG(manager_of(getpid()) == 0, "a manager behind setuid's back");
        }
    }
    return 0;
}
