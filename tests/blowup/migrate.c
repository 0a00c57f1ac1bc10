/* SPDX-License-Identifier: MIT
 *
 * One thread with a live heap of many MiB, moved to another cpu every millisecond, beside a second thread that only
 * sleeps: then each move gives it another concurrency id (alone in its process it would keep its id).  Its own frees
 * turn remote with every move unless heaps are re-homed; memory must stay where it was before the moves began.
 */
#include "blowup/measure.h"
#include <pthread.h>
#include <sys/syscall.h>

static volatile int stop;

static void *idler(void *argument)
{
    while (!stop)
        sleep_us(100000);
    return argument;
}

struct mover {
    pid_t tid;
    int cpus[64];
    int cpu_count;
};

static void *mover_main(void *argument)
{
    struct mover *mover = argument;
    for (int i = 0; !stop; i++) {
        proc_pin_tid(mover->tid, mover->cpus[i % mover->cpu_count]);
        sleep_us(1000);
    }
    return NULL;
}

#define COUNT 100000

static void *blocks[COUNT];

static void churn(struct rng *rng, uint64_t operations)
{
    for (uint64_t i = 0; i < operations; i++) {
        size_t where = rng_below(rng, COUNT);
        if (blocks[where] != NULL) {
            live_remove(blocks[where]);
            free(blocks[where]);
        }
        size_t size = 16 + rng_below(rng, 1000);
        CHECK((blocks[where] = malloc(size)) != NULL);
        touch(blocks[where], size);
        live_add(blocks[where]);
        if (i % 100000 == 0)
            measure_sample();
    }
}

int main(int argc, char **argv)
{
    test_begin(300);
    struct rng rng = {test_seed_from(NULL)};
    uint64_t operations = test_option(argc, argv, "--ops", 5000000);
    struct mover mover;
    mover.tid = (pid_t)syscall(SYS_gettid);
    mover.cpu_count = proc_cpus(mover.cpus, 64);
    if (mover.cpu_count < 2)
        SKIP("needs two cpus");
    if (proc_lacks_fence())
        SKIP("takes a fence, which there is none of under a seccomp filter");
    measure_begin();
    pthread_t sleeper, mover_thread;
    CHECK(pthread_create(&sleeper, NULL, idler, NULL) == 0);
    churn(&rng, operations / 2); /* at rest: the memory that this load needs */
    measure_sample();
    size_t rest = resident_peak;
    CHECK(pthread_create(&mover_thread, NULL, mover_main, &mover) == 0);
    churn(&rng, operations);
    measure_sample();
    stop = 1;
    CHECK(pthread_join(sleeper, NULL) == 0 && pthread_join(mover_thread, NULL) == 0);
    size_t moved = resident_peak;
    test_say("resident at rest %zu KiB, moved %zu KiB\n", rest / KIB, moved / KIB);
    CHECK_MSG(moved <= rest + rest / 20 + 4 * MIB, "memory grew from %zu to %zu KiB by moving", rest / KIB,
              moved / KIB);
    for (size_t i = 0; i < COUNT; i++)
        free(blocks[i]);
    measure_end();
    return 0;
}
