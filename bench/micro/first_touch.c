/* SPDX-License-Identifier: MIT
 *
 * Why: a numerical program takes its arrays when it starts, fills each from the front, and goes over them; what it
 * waits for at first is the system, a page at a time.  An operation is one block: all are taken, then each is filled in
 * turn (every byte), then all are read `passes` times in any order of pages, and freed.  `fill_seconds` is the filling
 * alone.
 *
 * `part` of a hundred of each block is filled, from the front: what an allocator brings beyond that is in
 * `peak_rss_kib`.
 */
#include "args.h"
#include "clock.h"
#include "result.h"

#include <stdlib.h>
#include <string.h>

enum { BLOCKS_MAX = 256, PAGE = 4096 };

struct params {
    uint64_t blocks, bytes, part, passes, rounds;
};

struct totals {
    uint64_t errors, ns, fill_ns;
};

/* A word of each page, the pages in the order of a walk that meets every one. */
static uint64_t read_pages(const unsigned char *block, uint64_t pages, uint64_t step)
{
    uint64_t errors = 0;
    for (uint64_t i = 0, page = 0; i < pages; i++, page = (page + step) % pages)
        errors += block[page * PAGE + i % PAGE] != (unsigned char)(pages & 0xff);
    return errors;
}

static void run_round(const struct params *params, struct totals *totals)
{
    unsigned char *blocks[BLOCKS_MAX];
    const uint64_t pages = params->bytes * params->part / 100 / PAGE;
    const uint64_t begin_ns = clock_ns();
    for (uint64_t i = 0; i < params->blocks; i++)
        if (!(blocks[i] = malloc(params->bytes)))
            exit(3);
    for (uint64_t i = 0; i < params->blocks; i++) {
        const uint64_t since_ns = clock_ns();
        memset(blocks[i], (int)(pages & 0xff), pages * PAGE);
        totals->fill_ns += clock_ns() - since_ns;
    }
    /* A prime far from the number of pages in a huge one: neighbours in time are none in the block. */
    for (uint64_t pass = 0; pass < params->passes; pass++)
        for (uint64_t i = 0; i < params->blocks; i++)
            totals->errors += read_pages(blocks[i], pages, 10007);
    for (uint64_t i = 0; i < params->blocks; i++)
        free(blocks[i]);
    totals->ns += clock_ns() - begin_ns;
}

int main(int argc, char **argv)
{
    struct params params = {.blocks = 6, .bytes = 100 << 20, .part = 100, .passes = 4, .rounds = 1};
    const struct arg args[] = {
        {"blocks", ARG_COUNT, &params.blocks, "blocks taken together"},
        {"bytes", ARG_COUNT, &params.bytes, "size of each"},
        {"part", ARG_COUNT, &params.part, "per cent of each that is filled"},
        {"passes", ARG_COUNT, &params.passes, "how often all pages are read afterwards"},
        {"rounds", ARG_COUNT, &params.rounds, "how often all of it is done"},
    };
    ARGS_READ("first_touch", argc, argv, args);
    if (!params.blocks || params.blocks > BLOCKS_MAX || params.part > 100 || params.bytes * params.part / 100 < PAGE)
        args_reject("blocks, bytes, part", "1 to 256 blocks, at most 100 per cent, a page or more filled");
    struct totals totals = {0};
    for (uint64_t i = 0; i < params.rounds; i++)
        run_round(&params, &totals);
    result_begin("first_touch", 1, params.blocks * params.rounds, totals.ns);
    result_count("blocks", params.blocks);
    result_count("bytes", params.bytes);
    result_count("part", params.part);
    result_real("fill_seconds", (double)totals.fill_ns / 1e9);
    return result_end(totals.errors);
}
