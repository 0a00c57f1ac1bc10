/* SPDX-License-Identifier: MIT
 *
 * Whether there is a processor to spare is seen: not with more threads than processors at work, and again once they
 * have stopped, whatever else runs on this machine now and then.
 */
#include <pthread.h>
#include <unistd.h>

#include "os/os.h"
#include "unit.h"

#define THREADS_MAX 1024

static _Atomic bool stop;

static void *spin(void *unused)
{
    while (!stop)
        continue;
    return unused;
}

static void await(bool busy)
{
    while (os_cpus_are_busy() != busy) /* the watchdog ends it */
        usleep(1000);
}

int main(void)
{
    unit_watchdog(60);
    static pthread_t thread[THREADS_MAX];
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    if (processors > THREADS_MAX)
        return 77;
    await(false);
    for (long i = 0; i < processors; i++) /* and this one, looking */
        EXPECT_EQ(pthread_create(&thread[i], NULL, spin, NULL), 0);
    await(true);
    stop = true;
    for (long i = 0; i < processors; i++)
        EXPECT_EQ(pthread_join(thread[i], NULL), 0);
    await(false);
    return 0;
}
