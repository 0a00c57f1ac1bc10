/* SPDX-License-Identifier: MIT
 *
 * Why: before an allocator takes new memory it may look whether somebody has some to spare; if it asks every heap, new
 * memory costs the more the more heaps there are.  All of `threads` threads fill `kib` KiB each with blocks of one size
 * and keep them; then one of them allocates `mib` MiB more, and only it is timed.  Nobody has any to spare, so looking
 * is in vain.
 *
 * An operation is 64 KiB of blocks, each of which gets one word written: page faults are in the figure, the same for
 * any number of threads.
 */
#include "args.h"
#include "clock.h"
#include "memory.h"
#include "result.h"
#include "team.h"

#include <stdlib.h>

enum { UNIT_BYTES = 64 << 10 };

static struct params {
    uint64_t threads, size, kib, mib;
} params = {.threads = 64, .size = 1024, .kib = 256, .mib = 32};

struct filling {
    uint64_t **block;
    uint64_t room, count;
};

static struct gate all_timed;
static uint64_t growth_ns;
static struct library_counts growth_counts;

static void fill(struct filling *filling, uint64_t blocks)
{
    for (uint64_t end = filling->count + blocks; filling->count < end; filling->count++) {
        uint64_t *block = malloc(params.size);
        *block = filling->count;
        filling->block[filling->count] = block;
    }
}

static void fresh_setup(struct worker *worker)
{
    struct filling *filling = worker->state = pages_map(sizeof(*filling));
    uint64_t own = (params.kib << 10) / params.size, more = worker->index == 0 ? (params.mib << 20) / params.size : 0;
    filling->room = own + more;
    filling->block = pages_map(filling->room * sizeof(*filling->block));
    fill(filling, own);
}

/* The others stay alive meanwhile: a thread that ends gives its heap up. */
static void fresh_work(struct worker *worker)
{
    struct filling *filling = worker->state;
    if (worker->index != 0) {
        gate_wait(&all_timed);
        return;
    }
    struct library_counts before = library_counts_read();
    uint64_t begin_ns = clock_ns();
    fill(filling, filling->room - filling->count);
    growth_ns = clock_ns() - begin_ns;
    struct library_counts after = library_counts_read();
    growth_counts = library_counts_between(&before, &after);
    gate_open(&all_timed);
}

static void fresh_finish(struct worker *worker)
{
    struct filling *filling = worker->state;
    for (uint64_t i = 0; i < filling->count; i++) {
        worker->errors += *filling->block[i] != i;
        free(filling->block[i]);
    }
    pages_unmap(filling->block, filling->room * sizeof(*filling->block));
    pages_unmap(filling, sizeof(*filling));
}

int main(int argc, char **argv)
{
    const struct arg args[] = {
        {"threads", ARG_COUNT, &params.threads, "threads that have memory; one of them takes more"},
        {"size", ARG_COUNT, &params.size, "bytes of a block, at least 8"},
        {"kib", ARG_COUNT, &params.kib, "KiB each thread has"},
        {"mib", ARG_COUNT, &params.mib, "MiB the one takes"},
    };
    ARGS_READ("fresh_memory", argc, argv, args);
    if (params.size < 8 || params.size > params.kib << 10 || !params.mib)
        args_reject("size, kib, mib", "size at least 8 and at most kib, mib at least 1");
    const struct team team = {
        .threads = params.threads, .setup = fresh_setup, .work = fresh_work, .finish = fresh_finish};
    struct outcome outcome = team_run(&team);
    result_begin("fresh_memory", params.threads, (params.mib << 20) / UNIT_BYTES, growth_ns);
    result_count("size", params.size);
    result_count("mib", params.mib);
    library_counts_print(&growth_counts, (params.mib << 20) / params.size);
    return result_end(outcome.errors);
}
