/* SPDX-License-Identifier: MIT
 *
 * Why: a program may use many sizes and few blocks of each, which an allocator that prepares blocks by size pays for.
 * `blocks` blocks of every size from 1 to 512 are allocated and written; the figure is the peak of resident memory.
 */
#include "args.h"
#include "clock.h"
#include "result.h"

#include <stdlib.h>
#include <string.h>

#define LARGEST 512u

int main(int argc, char **argv)
{
    uint64_t blocks = 3, errors = 0, begin_ns;
    const struct arg args[] = {
        {"blocks", ARG_COUNT, &blocks, "blocks of each size"},
    };
    ARGS_READ("every_size", argc, argv, args);
    if (blocks < 1)
        args_reject("blocks", "at least 1");
    void **kept = calloc(blocks * LARGEST, sizeof *kept);
    begin_ns = clock_ns();
    for (uint64_t i = 0; kept != NULL && i < blocks * LARGEST; i++) {
        size_t size = i % LARGEST + 1;
        kept[i] = malloc(size);
        if (kept[i] == NULL)
            errors++;
        else
            memset(kept[i], (int)size, size);
    }
    result_begin("every_size", 1, blocks * LARGEST, clock_ns() - begin_ns);
    return result_end(errors + (kept == NULL));
}
