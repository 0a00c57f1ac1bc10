/* SPDX-License-Identifier: MIT
 *
 * Why: databases fork to write snapshots, and the fork takes as long as the page tables are large: how an allocator
 * lays out its memory (huge pages or not, how many mappings) decides it.  A heap of `mib` MiB is built; then only
 * fork() is timed, in the parent; children end at once.
 */
#define _GNU_SOURCE
#include "args.h"
#include "clock.h"
#include "heap.h"
#include "histogram.h"
#include "result.h"

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static struct histogram forks_taken;

int main(int argc, char **argv)
{
    uint64_t mib = 256, forks = 50, settle_ms = 0;
    const struct arg args[] = {
        {"mib", ARG_COUNT, &mib, "live heap"},
        {"forks", ARG_COUNT, &forks, "forks to time"},
        {"settle_ms", ARG_COUNT, &settle_ms, "pause between building the heap and the first fork"},
    };
    ARGS_READ("fork_latency", argc, argv, args);
    struct heap_block *heap = heap_fill(mib, args_seed());
    clock_sleep_ms(settle_ms);
    uint64_t sum_ns = 0;
    uint64_t errors = 0;
    for (uint64_t i = 0; i < forks; i++) {
        int status = 0;
        uint64_t begin_ns = clock_ns();
        pid_t child = fork();
        if (child == 0)
            _exit(0);
        uint64_t fork_ns = clock_ns() - begin_ns;
        sum_ns += fork_ns;
        histogram_add(&forks_taken, fork_ns);
        errors += child < 0 || waitpid(child, &status, 0) != child || status;
    }
    errors += heap_check(heap);
    result_begin("fork_latency", 1, forks, sum_ns);
    result_count("mib", mib);
    histogram_report(&forks_taken, "");
    return result_end(errors);
}
