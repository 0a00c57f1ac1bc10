/* SPDX-License-Identifier: MIT
 *
 * Why: a server's buffers are of all sizes and live for all times.  Once as many are alive as there will ever be, an
 * allocator that keeps what was just freed touches no new page; one that gives it back pays for every page twice.  But
 * what it keeps must not be more than others keep: read `peak_rss_kib` beside the time.
 *
 * `live` buffers are there from the start, all their pages touched.  An operation replaces one at random: free, malloc of
 * another size, one word written in every page.  Each buffer is checked before it is freed.  `longest_us` is the longest
 * of the mallocs and frees alone.
 */
#include "args.h"
#include "clock.h"
#include "memory.h"
#include "result.h"
#include "team.h"

#include <stdlib.h>

enum { PAGE_WORDS = 4096 / sizeof(uint64_t) };

struct params {
    uint64_t threads, min, max, live, ops;
};

struct buffer {
    uint64_t *words;
    uint64_t count;
};

struct churn {
    struct buffer *buffers;
    uint64_t longest_ns;
};

static uint64_t longer(uint64_t longest_ns, uint64_t since_ns)
{
    uint64_t ns = clock_ns() - since_ns;
    return ns > longest_ns ? ns : longest_ns;
}

static void buffer_release(struct worker *worker, struct buffer *buffer)
{
    struct churn *churn = worker->state;
    for (uint64_t i = 0; i < buffer->count; i += PAGE_WORDS)
        worker->errors += buffer->words[i] != (i ^ buffer->count);
    uint64_t since_ns = clock_ns();
    free(buffer->words);
    churn->longest_ns = longer(churn->longest_ns, since_ns);
    *buffer = (struct buffer){0};
}

static void buffer_fill(struct worker *worker, struct buffer *buffer)
{
    const struct params *params = worker->team->params;
    struct churn *churn = worker->state;
    uint64_t size = random_between(&worker->random, params->min, params->max);
    uint64_t since_ns = clock_ns();
    buffer->words = malloc(size);
    churn->longest_ns = longer(churn->longest_ns, since_ns);
    if (!buffer->words) {
        worker->errors++;
        return;
    }
    buffer->count = size / sizeof(uint64_t);
    for (uint64_t i = 0; i < buffer->count; i += PAGE_WORDS)
        buffer->words[i] = i ^ buffer->count;
}

static void churn_setup(struct worker *worker)
{
    const struct params *params = worker->team->params;
    struct churn *churn = pages_map(sizeof *churn + params->live * sizeof(struct buffer));
    churn->buffers = (struct buffer *)(churn + 1);
    worker->state = churn;
    for (uint64_t i = 0; i < params->live; i++)
        buffer_fill(worker, &churn->buffers[i]);
    churn->longest_ns = 0;
}

static uint64_t longest_ns;

static void churn_work(struct worker *worker)
{
    const struct params *params = worker->team->params;
    struct churn *churn = worker->state;
    for (uint64_t i = 0; i < params->ops; i++) {
        struct buffer *buffer = &churn->buffers[random_below(&worker->random, params->live)];
        buffer_release(worker, buffer);
        buffer_fill(worker, buffer);
    }
    worker->ops = params->ops;
    uint64_t seen_ns = __atomic_load_n(&longest_ns, __ATOMIC_RELAXED);
    while (churn->longest_ns > seen_ns && !__atomic_compare_exchange_n(&longest_ns, &seen_ns, churn->longest_ns, true,
                                                                       __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}

static void churn_finish(struct worker *worker)
{
    const struct params *params = worker->team->params;
    struct churn *churn = worker->state;
    for (uint64_t i = 0; i < params->live; i++)
        buffer_release(worker, &churn->buffers[i]);
    pages_unmap(churn, sizeof *churn + params->live * sizeof(struct buffer));
}

int main(int argc, char **argv)
{
    struct params params = {.threads = 1, .min = 140 << 10, .max = 8 << 20, .live = 200, .ops = 5000};
    const struct arg args[] = {
        {"threads", ARG_COUNT, &params.threads, "threads, each with buffers of its own and doing all of ops"},
        {"min", ARG_COUNT, &params.min, "smallest buffer"},
        {"max", ARG_COUNT, &params.max, "largest buffer"},
        {"live", ARG_COUNT, &params.live, "buffers alive per thread"},
        {"ops", ARG_COUNT, &params.ops, "buffers replaced per thread"},
    };
    ARGS_READ("large_churn", argc, argv, args);
    if (params.min < 4096 || params.max < params.min || !params.live)
        args_reject("min, max, live", "4096 <= min <= max, live at least 1");
    const struct team team = {
        .threads = params.threads, .setup = churn_setup, .work = churn_work, .finish = churn_finish, .params = &params};
    struct outcome outcome = team_run(&team);
    result_begin("large_churn", params.threads, outcome.ops, outcome.ns);
    result_count("min", params.min);
    result_count("max", params.max);
    result_count("live", params.live);
    result_real("longest_us", (double)longest_ns / 1e3);
    return result_end(outcome.errors);
}
