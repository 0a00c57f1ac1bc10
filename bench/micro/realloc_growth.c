/* SPDX-License-Identifier: MIT
 *
 * Why: vectors grow by realloc, and for large ones the question is whether the library moves pages (mremap) or copies
 * bytes.  Numbers are appended until `bytes` are reached, the capacity growing by `percent` each time it is full.  An
 * operation is one append, so the figure includes the first touch of every page; `reallocs` and the longest of them are
 * reported as well.  Afterwards, outside the interval, the content is checked.
 */
#include "args.h"
#include "clock.h"
#include "result.h"

#include <stdio.h>
#include <stdlib.h>

struct params {
    uint64_t bytes, percent, first;
};

static uint64_t mix(uint64_t value)
{
    return value * 0x9e3779b97f4a7c15u;
}

int main(int argc, char **argv)
{
    struct params params = {.bytes = 256ull << 20, .percent = 200, .first = 1024};
    const struct arg args[] = {
        {"bytes", ARG_COUNT, &params.bytes, "size to grow to"},
        {"percent", ARG_COUNT, &params.percent, "new capacity in percent of the old"},
        {"first", ARG_COUNT, &params.first, "first capacity in bytes"},
    };
    ARGS_READ("realloc_growth", argc, argv, args);
    if (params.percent <= 100 || params.first < 1024 || params.bytes < params.first)
        args_reject("percent, first, bytes", "percent above 100, 1024 <= first <= bytes");
    uint64_t wanted = params.bytes / sizeof(uint64_t);
    uint64_t capacity = 0, reallocs = 0, longest_ns = 0;
    uint64_t *vector = NULL;
    uint64_t begin_ns = clock_ns();
    for (uint64_t length = 0; length < wanted; length++) {
        if (length == capacity) {
            capacity = capacity ? capacity * params.percent / 100 : params.first / sizeof(uint64_t);
            if (capacity > wanted)
                capacity = wanted;
            uint64_t realloc_ns = clock_ns();
            uint64_t *grown = realloc(vector, capacity * sizeof(uint64_t));
            realloc_ns = clock_ns() - realloc_ns;
            if (!grown) {
                fprintf(stderr, "realloc_growth: out of memory at %llu bytes\n",
                        (unsigned long long)(capacity * sizeof(uint64_t)));
                free(vector);
                return 3;
            }
            vector = grown;
            reallocs++;
            if (realloc_ns > longest_ns)
                longest_ns = realloc_ns;
        }
        vector[length] = mix(length);
    }
    uint64_t end_ns = clock_ns();
    uint64_t errors = 0;
    for (uint64_t i = 0; i < wanted; i++)
        errors += vector[i] != mix(i);
    free(vector);
    result_begin("realloc_growth", 1, wanted, end_ns - begin_ns);
    result_count("bytes", params.bytes);
    result_count("reallocs", reallocs);
    result_real("longest_us", (double)longest_ns / 1000.0);
    return result_end(errors);
}
