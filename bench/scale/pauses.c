/* SPDX-License-Identifier: MIT
 *
 * Why: a thread that computes for a while calls no malloc, and looks from outside like one that has gone.  An allocator
 * that takes the heaps of threads that went must not take those of threads that merely compute.  Each thread allocates
 * a batch, leaves it in the inbox of the next one, frees what it finds in its own, and computes for `pause_us`; so
 * there are remote frees, which is when such an allocator looks.  Only the work between two pauses counts: an operation
 * is one block's malloc and free.
 *
 * Batches are chained through their blocks' first words; a batch the next thread has not fetched yet comes back.
 */
#include "args.h"
#include "clock.h"
#include "memory.h"
#include "result.h"
#include "team.h"

#include <stdlib.h>

static struct params {
    uint64_t threads, size, batch, pause_us, ms;
} params = {.threads = 2, .size = 64, .batch = 64, .pause_us = 100, .ms = 300};

struct link {
    struct link *next;
    uint64_t mark;
};

struct inbox {
    struct link *x_batch;
} __attribute__((aligned(128)));

static struct inbox *inboxes;
static uint64_t x_busy_ns;

static uint64_t mark_of(const struct link *link)
{
    return (uintptr_t)link ^ 0x5a5a5a5a5a5a5a5au;
}

static struct link *batch_new(void)
{
    struct link *chain = NULL;
    for (uint64_t i = 0; i < params.batch; i++) {
        struct link *link = malloc(params.size);
        link->next = chain;
        link->mark = mark_of(link);
        chain = link;
    }
    return chain;
}

/* Returns how many blocks there were. */
static uint64_t batch_free(struct link *chain, uint64_t *errors)
{
    uint64_t blocks = 0;
    for (struct link *next; chain != NULL; chain = next, blocks++) {
        next = chain->next;
        *errors += chain->mark != mark_of(chain);
        free(chain);
    }
    return blocks;
}

static struct link *inbox_swap(struct inbox *inbox, struct link *batch)
{
    return __atomic_exchange_n(&inbox->x_batch, batch, __ATOMIC_ACQ_REL);
}

static void compute_until(uint64_t end_ns)
{
    while (clock_ns() < end_ns)
        cpu_relax();
}

static void pauses_work(struct worker *worker)
{
    struct inbox *own = &inboxes[worker->index], *next = &inboxes[(worker->index + 1) % params.threads];
    uint64_t busy_ns = 0, errors = 0, freed = 0;
    while (!team_stopped()) {
        uint64_t begin_ns = clock_ns();
        freed += batch_free(inbox_swap(next, batch_new()), &errors);
        freed += batch_free(inbox_swap(own, NULL), &errors);
        uint64_t end_ns = clock_ns();
        busy_ns += end_ns - begin_ns;
        compute_until(end_ns + params.pause_us * 1000);
    }
    worker->ops = freed;
    worker->errors = errors;
    __atomic_fetch_add(&x_busy_ns, busy_ns, __ATOMIC_RELAXED);
}

int main(int argc, char **argv)
{
    const struct arg args[] = {
        {"threads", ARG_COUNT, &params.threads, "threads in a circle, at least 2"},
        {"size", ARG_COUNT, &params.size, "bytes of a block, at least 16"},
        {"batch", ARG_COUNT, &params.batch, "blocks in a batch"},
        {"pause_us", ARG_COUNT, &params.pause_us, "computation between batches"},
        {"ms", ARG_COUNT, &params.ms, "length of the interval"},
    };
    ARGS_READ("pauses", argc, argv, args);
    if (params.threads < 2 || params.size < sizeof(struct link) || !params.ms)
        args_reject("threads, size, ms", "2 threads, size at least 16, at least 1 ms");
    inboxes = pages_map(params.threads * sizeof(*inboxes));
    const struct team team = {
        .threads = params.threads, .run_ms = params.ms, .work = pauses_work, .counted = true};
    struct outcome outcome = team_run(&team);
    for (uint64_t i = 0; i < params.threads; i++)
        batch_free(inboxes[i].x_batch, &outcome.errors);
    result_begin("pauses", params.threads, outcome.ops, x_busy_ns);
    result_count("pause_us", params.pause_us);
    if (outcome.counts.known)
        result_real("takeovers_per_second", (double)outcome.counts.takeovers * 1e9 / (double)outcome.ns);
    library_counts_print(&outcome.counts, outcome.ops);
    return result_end(outcome.errors);
}
