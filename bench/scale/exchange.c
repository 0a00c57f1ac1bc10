/* SPDX-License-Identifier: MIT
 *
 * Why: threads that share a table free each other's blocks one here, one there: of many sizes, and so of dozens of an
 * allocator's spans or slabs in turn.  What is sent home by the batch never fills one; what is kept where it was freed
 * travels once less.
 *
 * Each of `threads` threads allocates blocks of 16 to 127 bytes, one in sixteen of up to 1,007, and writes their first
 * and last bytes.  One in `share` goes into a random slot of a common table of `slots`, and what was there is freed,
 * whoever made it; the others are freed at once.  An operation is a malloc and a free.
 */
#include "args.h"
#include "memory.h"
#include "random.h"
#include "result.h"
#include "team.h"

#include <stdatomic.h>
#include <stdlib.h>

static struct params {
    uint64_t threads, slots, share, ops;
} params = {.threads = 2, .slots = 16384, .share = 4, .ops = 6000000};

static _Atomic(uint64_t *) *table;

static uint64_t mark_of(const uint64_t *block)
{
    return (uintptr_t)block ^ 0x5a5a000000000000u;
}

static uint64_t *make(struct random_source *random)
{
    const uint64_t number = random_next(random), size = 16 + (number >> 32) % ((number & 15) != 0 ? 112 : 992);
    uint64_t *block = malloc(size);
    ((char *)block)[size - 1] = 1;
    *block = mark_of(block);
    return block;
}

/* Returns how many errors that showed. */
static uint64_t drop(uint64_t *block)
{
    const uint64_t errors = block != NULL && *block != mark_of(block);
    free(block);
    return errors;
}

static void exchange_work(struct worker *worker)
{
    struct random_source random = worker->random;
    for (uint64_t ops = params.ops / params.threads; worker->ops < ops; worker->ops++) {
        uint64_t *block = make(&random);
        if (random_below(&random, params.share) == 0)
            block = atomic_exchange(&table[random_below(&random, params.slots)], block);
        worker->errors += drop(block);
    }
}

int main(int argc, char **argv)
{
    const struct arg args[] = {
        {"threads", ARG_COUNT, &params.threads, "threads"},
        {"slots", ARG_COUNT, &params.slots, "slots of the table they share"},
        {"share", ARG_COUNT, &params.share, "one block in so many goes through the table"},
        {"ops", ARG_COUNT, &params.ops, "blocks, of all threads"},
    };
    ARGS_READ("exchange", argc, argv, args);
    if (!params.threads || params.threads > 4096 || !params.slots || !params.share)
        args_reject("threads, slots, share", "1 to 4096 threads, a slot, and a share of at least 1");
    table = pages_map(params.slots * sizeof *table);
    const struct team team = {.threads = params.threads, .work = exchange_work, .counted = true};
    struct outcome outcome = team_run(&team);
    for (uint64_t i = 0; i < params.slots; i++)
        outcome.errors += drop(table[i]);
    pages_unmap(table, params.slots * sizeof *table);
    result_begin("exchange", params.threads, outcome.ops, outcome.ns);
    library_counts_print(&outcome.counts, outcome.ops);
    return result_end(outcome.errors);
}
