/* SPDX-License-Identifier: MIT
 *
 * Why: an allocator that gives free memory back on a clock does so while the program works.  Twice `spans` blocks of
 * `bytes` are allocated and every second one freed: as many free pieces that touch no other.  Then the program goes on
 * for `ms` with blocks of 16 bytes to 4 KiB and, one in 64, such a large one, each malloc and free timed by itself:
 * longest_us is how long the clock held it up.
 *
 * `rate_ratio` is the speed of that over the speed of the same work before anything was freed.  The large blocks get
 * two words written: it is about pieces of address space, not about pages.
 */
#include "args.h"
#include "clock.h"
#include "histogram.h"
#include "memory.h"
#include "random.h"
#include "result.h"

#include <stdio.h>
#include <stdlib.h>

enum { SLOTS = 1000, SMALLEST = 16, LARGEST = 4096, LARGE_ONE_IN = 64 };

struct block {
    uint64_t *words;
    uint64_t count;
};

static struct random_source source;
static uint64_t errors;

static struct block block_new(uint64_t bytes)
{
    struct block block = {malloc(bytes), bytes / sizeof(uint64_t)};
    if (block.words == NULL) {
        fprintf(stderr, "beside_purge: out of memory\n");
        exit(3);
    }
    block.words[0] = block.words[block.count - 1] = block.count;
    return block;
}

static void block_free(struct block block)
{
    errors += block.words[0] != block.count || block.words[block.count - 1] != block.count;
    free(block.words);
}

/* Works for so long; steps a second. */
static double work(struct block *slot, uint64_t large_bytes, uint64_t work_ms, struct histogram *histogram)
{
    uint64_t begin_ns = clock_ns(), now_ns = begin_ns, steps = 0;
    for (; now_ns - begin_ns < work_ms * 1000000; steps++) {
        uint64_t i = random_below(&source, SLOTS);
        uint64_t bytes = i % LARGE_ONE_IN == 0 ? large_bytes : random_between(&source, SMALLEST, LARGEST);
        uint64_t before_ns = clock_ns();
        block_free(slot[i]);
        slot[i] = block_new(bytes);
        now_ns = clock_ns();
        histogram_add(histogram, now_ns - before_ns);
    }
    return (double)steps * 1e9 / (double)(now_ns - begin_ns);
}

int main(int argc, char **argv)
{
    uint64_t spans = 5000, bytes = 140000, ms = 300, before_ms = 100;
    const struct arg args[] = {
        {"spans", ARG_COUNT, &spans, "pieces that become free"},
        {"bytes", ARG_COUNT, &bytes, "bytes of each"},
        {"ms", ARG_COUNT, &ms, "how long the program goes on"},
        {"before_ms", ARG_COUNT, &before_ms, "how long it works before, for comparison"},
    };
    ARGS_READ("beside_purge", argc, argv, args);
    if (bytes < 16 || !ms || !before_ms)
        args_reject("bytes, ms, before_ms", "bytes at least 16, times at least 1");
    static struct histogram settling, quiet, beside;
    static struct block slot[SLOTS];
    struct block *piece = pages_map((2 * spans + 1) * sizeof(*piece));
    random_seed(&source, args_seed());
    for (uint64_t i = 0; i < SLOTS; i++)
        slot[i] = block_new(SMALLEST);
    for (uint64_t i = 0; i < 2 * spans; i++)
        piece[i] = block_new(bytes);
    work(slot, bytes, before_ms, &settling); /* brings the heap to its steady state */
    double rate_before = work(slot, bytes, before_ms, &quiet);
    for (uint64_t i = 0; i < 2 * spans; i += 2)
        block_free(piece[i]);
    double rate = work(slot, bytes, ms, &beside);
    for (uint64_t i = 1; i < 2 * spans; i += 2)
        block_free(piece[i]);
    for (uint64_t i = 0; i < SLOTS; i++)
        block_free(slot[i]);
    result_begin("beside_purge", 1, beside.samples, ms * 1000000);
    result_count("spans", spans);
    result_count("bytes", bytes);
    result_real("rate_ratio", rate / rate_before);
    histogram_report(&quiet, "before_");
    histogram_report(&beside, "");
    return result_end(errors);
}
