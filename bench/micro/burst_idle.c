/* SPDX-License-Identifier: MIT
 *
 * Why: a program that once needed much and now sleeps should not keep it.  A burst of blocks of 32 to 332 bytes up to
 * `mib` MiB; then all are freed but every `keep`-th (keep=0: none is kept); then the program sleeps and calls the
 * allocator not once; then it allocates as much again.
 *
 * Reported are resident memory and the machine's free memory before the burst, at the peak, after the frees and after
 * the sleep.  `kept_rss` and `kept_system` are the share of the burst's memory not given back after the sleep, by
 * either measure: the first can be too low (parts of huge pages count as given back though nothing is), the second is
 * disturbed by whatever else the machine does.  `regrow_ratio` is the time of the second growth over that of the first.
 *
 * while=work: instead of sleeping the program computes; `work_ratio` is its speed then over its speed before the burst.
 *
 * Kept blocks are checked after the sleep: memory given back too eagerly shows here.
 *
 * A virtual machine may return free memory to its host, and each cpu keeps some of what was freed on it for itself: the
 * second growth then waits for the host, and the better for memory an allocator is, the longer.  warm=1: before it, a
 * child made at the start touches as much memory on each cpu and gives it back, as a suite does before the first.
 *
 * mapping=1: no allocator at all, but one mapping of huge pages that is touched, given back, and after the sleep
 * touched again: what that costs anyone who gives memory back.  The allocators' `regrow_ratio` is to be read beside it.
 */
#define _GNU_SOURCE
#include "args.h"
#include "clock.h"
#include "cpus.h"
#include "memory.h"
#include "random.h"
#include "result.h"
#include "sink.h"

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WORK_WORDS = 32 * 1024 };

struct params {
    uint64_t mib, min, max, keep, sleep_ms, mapping, warm;
    const char *meanwhile;
};

struct reading {
    uint64_t rss_kib;
    uint64_t free_kib;
};

static uint64_t work_array[WORK_WORDS];

static struct reading memory_read(void)
{
    return (struct reading){memory_rss_kib(), memory_system_free_kib()};
}

static uint64_t size_of(const struct params *params, uint64_t index)
{
    struct random_source random;
    random_seed(&random, args_seed() ^ index);
    return random_between(&random, params->min, params->max);
}

static uint64_t *block_new(const struct params *params, uint64_t index)
{
    uint64_t size = size_of(params, index);
    uint64_t *block = malloc(size);
    if (!block) {
        fprintf(stderr, "burst_idle: out of memory\n");
        exit(3);
    }
    memset(block, (int)(index & 255), size);
    block[0] = index;
    return block;
}

static uint64_t block_errors(const struct params *params, const uint64_t *block, uint64_t index)
{
    uint64_t size = size_of(params, index);
    uint64_t errors = block[0] != index;
    for (uint64_t i = sizeof(*block); i < size; i++)
        errors += ((const unsigned char *)block)[i] != (index & 255);
    return errors;
}

/* Passes over an array for a time; passes per second. */
static double work_for(uint64_t delay_ms)
{
    uint64_t begin_ns = clock_ns(), now_ns = begin_ns, passes = 0;
    while (now_ns - begin_ns < delay_ms * 1000000) {
        for (uint64_t i = 0; i < WORK_WORDS; i++)
            work_array[i] = work_array[i] * 3 + i;
        sink(work_array);
        passes++;
        now_ns = clock_ns();
    }
    return (double)passes * 1e9 / (double)(now_ns - begin_ns);
}

static void report_reading(const char *when, struct reading reading)
{
    char key[64];
    snprintf(key, sizeof(key), "rss_%s_kib", when);
    result_count(key, reading.rss_kib);
    snprintf(key, sizeof(key), "memfree_%s_kib", when);
    result_count(key, reading.free_kib);
}

static double share(uint64_t part_from, uint64_t part_to, uint64_t whole_from, uint64_t whole_to)
{
    double whole = (double)whole_to - (double)whole_from;
    return whole != 0 ? ((double)part_to - (double)part_from) / whole : 0;
}

static bool *x_warms; /* shared with the child that warms; NULL: there is none */
static pid_t warmer;

static void warmer_start(uint64_t bytes)
{
    x_warms = pages_map_shared(sizeof(*x_warms));
    warmer = fork();
    if (warmer < 0) {
        perror("burst_idle: fork");
        exit(3);
    }
    if (warmer > 0)
        return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (!__atomic_load_n(x_warms, __ATOMIC_ACQUIRE))
        clock_sleep_ms(1);
    int cpus[2], count = cpus_two(cpus) ? 2 : 1;
    const int advice[] = {MADV_NOHUGEPAGE, MADV_HUGEPAGE};
    for (int i = 0; i < 2 * count; i++) {
        cpu_of_thread_set(0, cpus[i % count]);
        void *pages = pages_map_untouched(bytes, advice[i / count]);
        pages_touch(pages, bytes);
        pages_unmap(pages, bytes);
    }
    _exit(0);
}

static void warm_again(void)
{
    if (x_warms == NULL)
        return;
    __atomic_store_n(x_warms, true, __ATOMIC_RELEASE);
    waitpid(warmer, NULL, 0);
}

static uint64_t touch_all(char *pages, uint64_t bytes)
{
    uint64_t begin_ns = clock_ns();
    pages_touch(pages, bytes);
    return clock_ns() - begin_ns;
}

static int mapping_burst(const struct params *params)
{
    const uint64_t bytes = params->mib << 20;
    char *pages = pages_map_untouched(bytes, MADV_HUGEPAGE);
    uint64_t first_ns = touch_all(pages, bytes);
    madvise(pages, bytes, MADV_DONTNEED);
    clock_sleep_ms(params->sleep_ms);
    warm_again();
    uint64_t again_ns = touch_all(pages, bytes);
    result_begin("burst_idle", 1, bytes / 4096, first_ns + again_ns);
    result_count("mib", params->mib);
    result_real("regrow_ratio", (double)again_ns / (double)first_ns);
    return result_end(0);
}

int main(int argc, char **argv)
{
    struct params params = {.mib = 100, .min = 32, .max = 332, .keep = 50, .sleep_ms = 300, .meanwhile = "sleep"};
    const struct arg args[] = {
        {"mib", ARG_COUNT, &params.mib, "MiB of the burst"},
        {"min", ARG_COUNT, &params.min, "smallest block, at least 8"},
        {"max", ARG_COUNT, &params.max, "largest block"},
        {"keep", ARG_COUNT, &params.keep, "keep every so-manieth block (0: none)"},
        {"sleep_ms", ARG_COUNT, &params.sleep_ms, "time without a call of the allocator"},
        {"warm", ARG_COUNT, &params.warm, "1: memory is touched by a child before the second growth"},
        {"mapping", ARG_COUNT, &params.mapping, "1: a mapping instead of blocks"},
        {"while", ARG_TEXT, &params.meanwhile, "sleep or work"},
    };
    ARGS_READ("burst_idle", argc, argv, args);
    bool works = !strcmp(params.meanwhile, "work");
    if (!works && strcmp(params.meanwhile, "sleep"))
        args_reject("while", "sleep or work");
    if (params.min < 8 || params.max < params.min)
        args_reject("min, max", "8 <= min <= max");
    if (params.warm)
        warmer_start((params.mib + params.mib / 2) << 20);
    if (params.mapping)
        return mapping_burst(&params);
    uint64_t blocks = (params.mib << 20) / ((params.min + params.max) / 2);
    uint64_t **block = pages_map(blocks * sizeof(*block));
    double work_before = works ? work_for(params.sleep_ms) : 0;

    struct reading before = memory_read();
    uint64_t grow_ns = clock_ns();
    for (uint64_t i = 0; i < blocks; i++)
        block[i] = block_new(&params, i);
    grow_ns = clock_ns() - grow_ns;
    struct reading peak = memory_read();

    uint64_t kept = 0;
    uint64_t free_ns = clock_ns();
    for (uint64_t i = 0; i < blocks; i++) {
        if (params.keep && i % params.keep == 0) {
            kept++;
            continue;
        }
        free(block[i]);
        block[i] = NULL;
    }
    free_ns = clock_ns() - free_ns;
    struct reading freed = memory_read();
    double work_after = 0;
    if (works)
        work_after = work_for(params.sleep_ms);
    else
        clock_sleep_ms(params.sleep_ms);
    struct reading slept = memory_read();

    uint64_t errors = 0;
    for (uint64_t i = 0; i < blocks; i++)
        errors += block[i] ? block_errors(&params, block[i], i) : 0;
    warm_again();
    uint64_t regrow_ns = clock_ns();
    for (uint64_t i = 0; i < blocks; i++) {
        if (!block[i])
            block[i] = block_new(&params, i);
    }
    regrow_ns = clock_ns() - regrow_ns;
    struct reading regrown = memory_read();
    for (uint64_t i = 0; i < blocks; i++)
        errors += block_errors(&params, block[i], i);

    uint64_t regrown_blocks = blocks - kept;
    result_begin("burst_idle", 1, blocks, grow_ns + free_ns + regrow_ns);
    result_count("mib", params.mib);
    result_count("keep", params.keep);
    result_real("kept_rss", share(before.rss_kib, slept.rss_kib, before.rss_kib, peak.rss_kib));
    result_real("kept_system", share(before.free_kib, slept.free_kib, before.free_kib, peak.free_kib));
    result_real("grow_ns_per_op", (double)grow_ns / (double)blocks);
    result_real("free_ns_per_op", (double)free_ns / (double)regrown_blocks);
    result_real("regrow_ns_per_op", (double)regrow_ns / (double)regrown_blocks);
    result_real("regrow_ratio", (double)regrow_ns / (double)regrown_blocks / ((double)grow_ns / (double)blocks));
    report_reading("before", before);
    report_reading("peak", peak);
    report_reading("freed", freed);
    report_reading("slept", slept);
    report_reading("regrown", regrown);
    if (works)
        result_real("work_ratio", work_after / work_before);
    return result_end(errors);
}
