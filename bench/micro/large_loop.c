/* SPDX-License-Identifier: MIT
 *
 * Why: programs that work in buffers of a few MiB (images, rows, messages) allocate one, fill it and free it, over and
 * over.  An allocator that returns each to the system pays a page fault for every 4 KiB every time; one that keeps them
 * all never gives memory back.  An operation is one buffer: malloc, one word written in every page, checked, free.
 * `longest_free_us` is the longest of the frees alone: what a program waits that only wanted to let go.
 *
 * A server's buffers are of all sizes and live for all times (`filled=1`): `live` of them are there from the start, and
 * an operation replaces one at random.  As many are alive as there will ever be, so an allocator that keeps what was
 * just freed touches no new page; but what it keeps must not be more than others keep: read `peak_rss_kib` beside the
 * time.
 */
#include "args.h"
#include "clock.h"
#include "memory.h"
#include "result.h"
#include "team.h"

#include <stdbool.h>
#include <stdlib.h>

enum { PAGE_WORDS = 4096 / sizeof(uint64_t) };

struct params {
    uint64_t threads, min, max, live, filled, ops;
};

struct buffer {
    uint64_t *words;
    uint64_t count;
};

static uint64_t x_longest_free_ns;

static void note_longest(uint64_t free_ns)
{
    uint64_t longest_ns = __atomic_load_n(&x_longest_free_ns, __ATOMIC_RELAXED);
    while (free_ns > longest_ns && !__atomic_compare_exchange_n(&x_longest_free_ns, &longest_ns, free_ns, true,
                                                                __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}

static uint64_t buffer_release(struct buffer *buffer)
{
    uint64_t errors = 0;
    for (uint64_t i = 0; i < buffer->count; i += PAGE_WORDS)
        errors += buffer->words[i] != (i ^ buffer->count);
    uint64_t free_ns = clock_ns();
    free(buffer->words);
    note_longest(clock_ns() - free_ns);
    buffer->words = NULL;
    buffer->count = 0;
    return errors;
}

static void buffer_fill(struct worker *worker, struct buffer *buffer)
{
    const struct params *params = worker->team->params;
    uint64_t size = random_between(&worker->random, params->min, params->max);
    buffer->words = malloc(size);
    if (!buffer->words) {
        worker->errors++;
        return;
    }
    buffer->count = size / sizeof(uint64_t);
    for (uint64_t i = 0; i < buffer->count; i += PAGE_WORDS)
        buffer->words[i] = i ^ buffer->count;
}

static void large_setup(struct worker *worker)
{
    const struct params *params = worker->team->params;
    struct buffer *buffers = worker->state = pages_map(params->live * sizeof *buffers);
    for (uint64_t i = 0; params->filled && i < params->live; i++)
        buffer_fill(worker, &buffers[i]);
}

static void large_work(struct worker *worker)
{
    const struct params *params = worker->team->params;
    struct buffer *buffers = worker->state;
    for (uint64_t i = 0; i < params->ops; i++) {
        struct buffer *buffer =
            &buffers[params->filled ? random_below(&worker->random, params->live) : i % params->live];
        worker->errors += buffer_release(buffer);
        buffer_fill(worker, buffer);
    }
    worker->ops = params->ops;
}

static void large_finish(struct worker *worker)
{
    const struct params *params = worker->team->params;
    struct buffer *buffers = worker->state;
    for (uint64_t i = 0; i < params->live; i++)
        worker->errors += buffer_release(&buffers[i]);
    pages_unmap(buffers, params->live * sizeof(struct buffer));
}

int main(int argc, char **argv)
{
    struct params params = {.threads = 1, .min = 1 << 20, .max = 8 << 20, .live = 1, .ops = 250};
    const struct arg args[] = {
        {"threads", ARG_COUNT, &params.threads, "threads, each doing all of ops"},
        {"min", ARG_COUNT, &params.min, "smallest buffer"},
        {"max", ARG_COUNT, &params.max, "largest buffer"},
        {"live", ARG_COUNT, &params.live, "buffers alive per thread"},
        {"filled", ARG_COUNT, &params.filled,
         "1: they are from the start, and an operation replaces one at random, not the oldest"},
        {"ops", ARG_COUNT, &params.ops, "buffers per thread"},
    };
    ARGS_READ("large_loop", argc, argv, args);
    if (params.min < 4096 || params.max < params.min || !params.live)
        args_reject("min, max, live", "4096 <= min <= max, live at least 1");
    const struct team team = {
        .threads = params.threads, .setup = large_setup, .work = large_work, .finish = large_finish, .params = &params};
    struct outcome outcome = team_run(&team);
    result_begin("large_loop", params.threads, outcome.ops, outcome.ns);
    result_count("min", params.min);
    result_count("max", params.max);
    result_count("live", params.live);
    result_count("filled", params.filled);
    result_real("longest_free_us", (double)x_longest_free_ns / 1e3);
    return result_end(outcome.errors);
}
