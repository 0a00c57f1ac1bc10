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

static bool comes_to_be(bool busy)
{
    const int patience_ms = 20000;
    for (int ms = 0; ms < patience_ms && os_cpus_are_busy() != busy; ms++)
        usleep(1000);
    return os_cpus_are_busy() == busy;
}

int main(void)
{
    unit_expect_healthy();
    unit_watchdog(100);
    static pthread_t thread[THREADS_MAX];
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    if (processors > THREADS_MAX)
        return 77;
    if (!comes_to_be(false))
        return 77; /* never quiet */
    for (long i = 0; i < processors; i++) /* and this one, looking */
        EXPECT_EQ(pthread_create(&thread[i], NULL, spin, NULL), 0);
    EXPECT(comes_to_be(true));
    stop = true;
    for (long i = 0; i < processors; i++)
        EXPECT_EQ(pthread_join(thread[i], NULL), 0);
    EXPECT(comes_to_be(false));
    return 0;
}
