/* SPDX-License-Identifier: MIT
 *
 * Why: a program at the edge of its address space (ulimit -v) still has to be told quickly that there is none, or be
 * given what is left.  A heap of `mib` MiB of blocks of 16 to 1,024 bytes, of which every second is freed, is full of
 * free memory, none of it of much use to anybody.  Then RLIMIT_AS is set `left` bytes above what the process has, and
 * `ops` times a block of `bytes` is asked for.  What is had is kept; when one is refused, the oldest is freed.  So
 * about half of the requests meet a full address space.  Some of the small blocks are replaced between the times.
 *
 * Each request is timed by itself, whether it was refused or not; `refused` says how many were.
 */
#include "args.h"
#include "clock.h"
#include "histogram.h"
#include "memory.h"
#include "result.h"
#include "slots.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

enum { SMALLEST = 16, LARGEST = 1024, STEPS_BETWEEN = 1000, KEPT_MAX = 256 };

static struct histogram requests;

static void limit_set(uint64_t left)
{
    const uint64_t bytes = (memory_address_kib() << 10) + left;
    struct rlimit limit;
    getrlimit(RLIMIT_AS, &limit);
    limit.rlim_cur = bytes;
    if (setrlimit(RLIMIT_AS, &limit)) {
        perror("near_limit: setrlimit");
        exit(3);
    }
}

/* Frees every second block: the table gets half as long. */
static void thin_out(struct slots *slots)
{
    for (uint64_t i = 0; i < slots->count; i += 2) {
        struct slot *kept = &slots->slot[i / 2];
        slots->errors += *slots->slot[i].block != slots_mark(i, slots->slot[i].size);
        free(slots->slot[i].block);
        *kept = slots->slot[i + 1];
        *kept->block = slots_mark(i / 2, kept->size);
    }
    slots->count /= 2;
}

/* Blocks that were had, the oldest first. */
static struct {
    char *block[KEPT_MAX];
    uint64_t count;
} kept;

static void kept_drop_oldest(void)
{
    if (kept.count == 0)
        return;
    free(kept.block[0]);
    kept.count--;
    for (uint64_t i = 0; i < kept.count; i++)
        kept.block[i] = kept.block[i + 1];
}

/* True if it was refused. */
static bool request(uint64_t bytes)
{
    if (kept.count == KEPT_MAX)
        kept_drop_oldest();
    uint64_t begin_ns = clock_ns();
    char *block = malloc(bytes);
    histogram_add(&requests, clock_ns() - begin_ns);
    if (block == NULL) {
        kept_drop_oldest();
        return true;
    }
    block[0] = block[bytes - 1] = 1;
    kept.block[kept.count++] = block;
    return false;
}

int main(int argc, char **argv)
{
    uint64_t mib = 64, left = 8 << 20, bytes = 16 << 20, ops = 50, refused = 0;
    const struct arg args[] = {
        {"mib", ARG_COUNT, &mib, "MiB of small blocks, of which half stay"},
        {"left", ARG_COUNT, &left, "bytes of address space left below the limit"},
        {"bytes", ARG_COUNT, &bytes, "bytes of a request"},
        {"ops", ARG_COUNT, &ops, "requests"},
    };
    ARGS_READ("near_limit", argc, argv, args);
    if (!mib || !bytes || !ops)
        args_reject("mib, bytes, ops", "at least 1");
    struct random_source random;
    random_seed(&random, args_seed());
    struct slots slots = {.count = (mib << 20) / ((SMALLEST + LARGEST) / 2) & ~1ull,
                          .min = SMALLEST,
                          .max = LARGEST,
                          .touch = LARGEST,
                          .random = &random};
    const uint64_t table_slots = slots.count;
    slots_open(&slots);
    thin_out(&slots);
    limit_set(left);
    uint64_t begin_ns = clock_ns();
    for (uint64_t i = 0; i < ops; i++) {
        refused += request(bytes);
        for (unsigned step = 0; step < STEPS_BETWEEN; step++)
            slots_step(&slots);
    }
    uint64_t ns = clock_ns() - begin_ns;
    while (kept.count > 0)
        kept_drop_oldest();
    uint64_t errors = slots_close(&slots);
    pages_unmap(slots.slot + slots.count, (table_slots - slots.count) * sizeof(struct slot));
    result_begin("near_limit", 1, ops, ns);
    result_count("mib", mib);
    result_count("bytes", bytes);
    result_count("refused", refused);
    histogram_report(&requests, "");
    return result_end(errors);
}
