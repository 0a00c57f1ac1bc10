/* SPDX-License-Identifier: MIT
 *
 * A pass of the program makes room between two batches for another of the program's threads, and not for the manager,
 * which comes in once it is over.
 */
#include "heap/pass.h"

#include <pthread.h>

#include "os/os.h"
#include "unit.h"

static _Atomic unsigned naps;
static _Atomic bool came;

void __real_os_sleep(uint64_t ns);
void __wrap_os_sleep(uint64_t ns);
void __wrap_os_sleep(uint64_t ns)
{
    naps++;
    __real_os_sleep(ns);
}

static void *come(void *as_manager)
{
    if (as_manager != NULL)
        background_thread_set(own_thread_pointer());
    pass_begin();
    came = true;
    pass_end();
    background_thread_set(NULL);
    return NULL;
}

static pthread_t start(void *as_manager)
{
    pthread_t thread;
    came = false;
    naps = 0;
    EXPECT_EQ(pthread_create(&thread, NULL, come, as_manager), 0);
    return thread;
}

int main(void)
{
    unit_expect_healthy();
    unit_watchdog(100);

    pass_begin();
    pthread_t thread = start(&came);
    while (naps < 2 && !pass_is_wanted())
        sched_yield();
    EXPECT(!pass_is_wanted());
    pass_yield();
    EXPECT(!came);
    pass_end();
    EXPECT_EQ(pthread_join(thread, NULL), 0);
    EXPECT(came);

    pass_begin();
    thread = start(NULL);
    while (!pass_is_wanted())
        sched_yield();
    while (!came)
        pass_yield();
    pass_end();
    EXPECT_EQ(pthread_join(thread, NULL), 0);
    return 0;
}
