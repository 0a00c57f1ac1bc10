/* SPDX-License-Identifier: MIT
 *
 * A migration storm: a driver moves each worker to another cpu every millisecond, and every second worker moves itself
 * as well, in the middle of its work.  Each move aborts a section that is under way and may change the thread's
 * concurrency id, so blocks made on one heap are freed from another all the time.  Needs two cpus.
 */
#include "stress/worker.h"

int main(int argc, char **argv)
{
    test_begin(300);
    uint64_t seed = test_seed_from(NULL);
    uint64_t milliseconds = test_option(argc, argv, "--ms", 4000);
    int cpus[64];
    int cpu_count = proc_cpus(cpus, 64);
    if (cpu_count < 2)
        SKIP("migration needs two cpus, this process may use %d", cpu_count);
    shadow_create();
    static const size_t counts[] = {1, 2, 3, 8};
    for (size_t c = 0; c < 4; c++) {
        struct rng rng = {seed + c};
        workers_start(counts[c], seed * (c + 1));
        uint64_t end = now_ms() + milliseconds / 4;
        while (now_ms() < end) {
            for (size_t i = 0; i < counts[c]; i++) {
                pid_t tid = __atomic_load_n(&workers[i].tid, __ATOMIC_RELAXED);
                if (tid != 0)
                    proc_pin_tid(tid, cpus[rng_below(&rng, (size_t)cpu_count)]);
            }
            sleep_us(c % 2 ? 1000 : 200);
        }
        workers_finish();
        for (size_t i = 0; i < WORKER_MOST; i++)
            workers[i].tid = 0;
    }
    return 0;
}
