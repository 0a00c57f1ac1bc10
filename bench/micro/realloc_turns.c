/* SPDX-License-Identifier: MIT
 *
 * Why: one vector that grows alone may find free space behind it each time.  Several that grow in turns are in each
 * other's way: an allocator copies, or moves pages.  An operation is one realloc and the first touch of the pages it
 * added; all buffers grow by `percent` in turns until each has `bytes`, then they are checked and freed, `rounds`
 * times.
 */
#include "args.h"
#include "clock.h"
#include "result.h"

#include <stdlib.h>

enum { BUFFERS_MAX = 64, PAGE_WORDS = 4096 / sizeof(uint64_t) };

struct params {
    uint64_t buffers, bytes, first, percent, rounds;
};

struct totals {
    uint64_t ops, errors, ns, longest_ns;
};

struct buffer {
    uint64_t *words;
    uint64_t count;
};

static void grow(struct totals *totals, struct buffer *buffer, uint64_t size)
{
    uint64_t since_ns = clock_ns();
    uint64_t *grown = realloc(buffer->words, size);
    uint64_t ns = clock_ns() - since_ns;
    if (!grown)
        exit(3);
    totals->longest_ns = ns > totals->longest_ns ? ns : totals->longest_ns;
    totals->ops++;
    uint64_t count = size / sizeof(uint64_t), from = (buffer->count + PAGE_WORDS - 1) / PAGE_WORDS * PAGE_WORDS;
    for (uint64_t i = from; i < count; i += PAGE_WORDS)
        grown[i] = i;
    *buffer = (struct buffer){grown, count};
}

static void run_round(const struct params *params, struct totals *totals)
{
    struct buffer buffers[BUFFERS_MAX] = {{0}};
    uint64_t begin_ns = clock_ns();
    for (uint64_t size = params->first;; size = size * params->percent / 100) {
        size = size < params->bytes ? size : params->bytes;
        for (uint64_t i = 0; i < params->buffers; i++)
            grow(totals, &buffers[i], size);
        if (size == params->bytes)
            break;
    }
    totals->ns += clock_ns() - begin_ns;
    for (uint64_t i = 0; i < params->buffers; i++) {
        for (uint64_t word = 0; word < buffers[i].count; word += PAGE_WORDS)
            totals->errors += buffers[i].words[word] != word;
        free(buffers[i].words);
    }
}

int main(int argc, char **argv)
{
    struct params params = {.buffers = 4, .bytes = 64 << 20, .first = 64 << 10, .percent = 125, .rounds = 3};
    const struct arg args[] = {
        {"buffers", ARG_COUNT, &params.buffers, "buffers that grow in turns"},
        {"bytes", ARG_COUNT, &params.bytes, "size each grows to"},
        {"first", ARG_COUNT, &params.first, "first size"},
        {"percent", ARG_COUNT, &params.percent, "new size in percent of the old"},
        {"rounds", ARG_COUNT, &params.rounds, "how often all of it is done"},
    };
    ARGS_READ("realloc_turns", argc, argv, args);
    if (!params.buffers || params.buffers > BUFFERS_MAX || params.percent <= 100 || params.first < 4096 ||
        params.bytes < params.first)
        args_reject("buffers, first, bytes, percent", "1 to 64 buffers, 4096 <= first <= bytes, percent above 100");
    struct totals totals = {0};
    for (uint64_t i = 0; i < params.rounds; i++)
        run_round(&params, &totals);
    result_begin("realloc_turns", 1, totals.ops, totals.ns);
    result_count("buffers", params.buffers);
    result_count("bytes", params.bytes);
    result_real("longest_us", (double)totals.longest_ns / 1e3);
    return result_end(totals.errors);
}
