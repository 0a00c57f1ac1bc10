/* SPDX-License-Identifier: MIT
 *
 * Why: what an allocator has to look at to give memory back must not be looked at again and again.  `blocks` large
 * blocks are made, a page of each is touched, and every second one is freed: as many free spans as there can be.
 *
 *   how=trim    an operation is one freed block; the time is malloc_trim's.  Twice the blocks must take twice the time.
 *   how=clock   meanwhile the allocator may give them back by a thread of its own, on its clock: for `ms` this thread
 *               goes on taking and freeing such blocks, and `longest_us` and `over_50us` tell what it waited for.
 */
#include "args.h"
#include "clock.h"
#include "memory.h"
#include "random.h"
#include "result.h"

#include <malloc.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct params {
    uint64_t blocks, bytes, ms;
    const char *how;
};

struct waits {
    uint64_t ops, longest_ns, over_50us;
};

static char **make(const struct params *params)
{
    char **blocks = pages_map(params->blocks * sizeof *blocks);
    for (uint64_t i = 0; i < params->blocks; i++) {
        blocks[i] = malloc(params->bytes);
        if (!blocks[i])
            exit(3);
        blocks[i][0] = (char)i;
    }
    for (uint64_t i = 0; i < params->blocks; i += 2) {
        free(blocks[i]);
        blocks[i] = NULL;
    }
    return blocks;
}

static void note(struct waits *waits, uint64_t ns)
{
    waits->ops++;
    waits->over_50us += ns > 50000;
    waits->longest_ns = ns > waits->longest_ns ? ns : waits->longest_ns;
}

static struct waits work_beside(const struct params *params)
{
    struct waits waits = {0};
    struct random_source random;
    random_seed(&random, args_seed());
    for (uint64_t end_ns = clock_ns() + params->ms * 1000000, now_ns = 0; now_ns < end_ns;) {
        uint64_t size = random_between(&random, params->bytes, params->bytes * 2), begin_ns = clock_ns();
        char *block = malloc(size);
        now_ns = clock_ns();
        note(&waits, now_ns - begin_ns);
        if (!block)
            exit(3);
        free(block);
    }
    return waits;
}

static uint64_t drop(const struct params *params, char **blocks)
{
    uint64_t errors = 0;
    for (uint64_t i = 1; i < params->blocks; i += 2) {
        errors += blocks[i][0] != (char)i;
        free(blocks[i]);
    }
    pages_unmap(blocks, params->blocks * sizeof *blocks);
    return errors;
}

int main(int argc, char **argv)
{
    struct params params = {.blocks = 80000, .bytes = 140 << 10, .ms = 3000, .how = "trim"};
    const struct arg args[] = {
        {"blocks", ARG_COUNT, &params.blocks, "blocks made; half of them are freed"},
        {"bytes", ARG_COUNT, &params.bytes, "size of each"},
        {"how", ARG_TEXT, &params.how, "trim or clock"},
        {"ms", ARG_COUNT, &params.ms, "how=clock: for how long to go on"},
    };
    ARGS_READ("span_trim", argc, argv, args);
    bool by_clock = strcmp(params.how, "clock") == 0;
    if (!by_clock && strcmp(params.how, "trim") != 0)
        args_reject("how", "trim or clock");
    char **blocks = make(&params);
    uint64_t begin_ns = clock_ns();
    struct waits waits = {.ops = params.blocks / 2};
    if (by_clock)
        waits = work_beside(&params);
    else
        malloc_trim(0);
    uint64_t ns = clock_ns() - begin_ns;
    uint64_t kept_kib = memory_rss_kib(), errors = drop(&params, blocks);
    result_begin("span_trim", 1, waits.ops, ns);
    result_text("how", params.how);
    result_count("blocks", params.blocks);
    result_count("kept_kib", kept_kib);
    result_real("longest_us", (double)waits.longest_ns / 1e3);
    result_count("over_50us", waits.over_50us);
    return result_end(errors);
}
