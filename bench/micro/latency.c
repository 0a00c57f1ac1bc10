/* SPDX-License-Identifier: MIT
 *
 * Why: averages hide stalls.  While the heap grows to `mib` MiB, with `churn` frees of random blocks for every hundred
 * allocations, every malloc together with the first touch of each page of its block is timed by itself: page faults,
 * huge pages cleared inline, locks and system calls all land there.
 *
 * The second question is what the allocator's own work does to the program's other memory calls: every 64 operations
 * the program maps (and unmaps) 64 KiB itself, and the mmap alone is timed; `mmap_alone_*` are the same calls made
 * before anything grows.
 *
 * Sizes are spread evenly over powers of two from 16 bytes to 16 KiB.  The figures include the two clock readings.
 */
#define _GNU_SOURCE
#include "args.h"
#include "clock.h"
#include "histogram.h"
#include "memory.h"
#include "random.h"
#include "result.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { SMALLEST = 16, MMAP_BYTES = 64 * 1024, MMAP_EVERY = 64, ALONE_CALLS = 4000, PAGE_WORDS = 512 };

struct params {
    uint64_t mib, churn, doublings;
};

struct live {
    uint64_t *block;
    uint64_t size;
};

static struct histogram allocation, mapping, mapping_alone;

static void mmap_timed(struct histogram *histogram)
{
    uint64_t begin_ns = clock_ns();
    void *pages = mmap(NULL, MMAP_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    histogram_add(histogram, clock_ns() - begin_ns);
    if (pages == MAP_FAILED) {
        perror("latency: mmap");
        exit(3);
    }
    munmap(pages, MMAP_BYTES);
}

static uint64_t *allocate_timed(uint64_t size)
{
    uint64_t begin_ns = clock_ns();
    uint64_t *block = malloc(size);
    for (uint64_t word = 0; word < size / 8; word += PAGE_WORDS)
        *(volatile uint64_t *)&block[word] = size;
    *(volatile uint64_t *)&block[size / 8 - 1] = size;
    histogram_add(&allocation, clock_ns() - begin_ns);
    return block;
}

static uint64_t block_wrong(const struct live *live)
{
    return live->block[0] != live->size || live->block[live->size / 8 - 1] != live->size;
}

int main(int argc, char **argv)
{
    struct params params = {.mib = 200, .churn = 30, .doublings = 10};
    const struct arg args[] = {
        {"mib", ARG_COUNT, &params.mib, "live MiB to grow to"},
        {"churn", ARG_COUNT, &params.churn, "frees per 100 allocations, at most 90"},
        {"doublings", ARG_COUNT, &params.doublings, "largest size is 16 bytes doubled so many times"},
    };
    struct random_source random;
    ARGS_READ("latency", argc, argv, args);
    if (params.churn > 90 || params.doublings < 1 || params.doublings > 16)
        args_reject("churn, doublings", "churn at most 90, doublings 1 to 16");
    random_seed(&random, args_seed());
    uint64_t bytes = params.mib << 20;
    uint64_t room = bytes / (SMALLEST << params.doublings) * params.doublings * 4 + 4096;
    struct live *live = pages_map(room * sizeof(*live));
    for (unsigned i = 0; i < ALONE_CALLS; i++)
        mmap_timed(&mapping_alone);

    uint64_t count = 0, live_bytes = 0, errors = 0;
    uint64_t begin_ns = clock_ns();
    while (live_bytes < bytes && count < room) {
        uint64_t power = (uint64_t)SMALLEST << random_below(&random, params.doublings);
        uint64_t size = (power + random_below(&random, power)) & ~7ull;
        live[count].block = allocate_timed(size);
        live[count].size = size;
        live_bytes += size;
        count++;
        if (random_below(&random, 100) < params.churn) {
            uint64_t victim = random_below(&random, count);
            errors += block_wrong(&live[victim]);
            live_bytes -= live[victim].size;
            free(live[victim].block);
            live[victim] = live[--count];
        }
        if (allocation.samples % MMAP_EVERY == 0)
            mmap_timed(&mapping);
    }
    uint64_t end_ns = clock_ns();
    for (uint64_t i = 0; i < count; i++)
        errors += block_wrong(&live[i]);
    result_begin("latency", 1, allocation.samples, end_ns - begin_ns);
    result_count("mib", live_bytes >> 20);
    histogram_report(&allocation, "");
    histogram_report(&mapping_alone, "mmap_alone_");
    histogram_report(&mapping, "mmap_");
    return result_end(errors);
}
