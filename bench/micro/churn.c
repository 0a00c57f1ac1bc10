/* SPDX-License-Identifier: MIT
 *
 * Why: memory that creeps up over hours is found in production, not in a benchmark of a second.  Small, medium and
 * large blocks (nine in ten, one in ten, one in a thousand) are replaced at random while the live size stays where it
 * is, for as long as asked; resident memory after the first `first_ms` is compared with that at the end.  Run it for an
 * hour with first_ms=60000 to mean it.
 */
#include "args.h"
#include "clock.h"
#include "memory.h"
#include "result.h"
#include "slots.h"
#include "team.h"

struct params {
    uint64_t threads, mib, ms, first_ms;
};

/* Three tables, so that each size keeps its share of the live bytes. */
enum { SMALL, MEDIUM, LARGE, TABLES };
static const uint64_t smallest[TABLES] = {16, 1025, 32 << 10};
static const uint64_t largest[TABLES] = {1024, 32 << 10, 1 << 20};
static const uint64_t percent_of_bytes[TABLES] = {50, 30, 20};

static uint64_t first_kib, last_kib;

static void churn_setup(struct worker *worker)
{
    const struct params *params = worker->team->params;
    struct slots *tables = pages_map(TABLES * sizeof(*tables));
    for (unsigned i = 0; i < TABLES; i++) {
        uint64_t bytes = (params->mib << 20) / params->threads * percent_of_bytes[i] / 100;
        tables[i].min = smallest[i];
        tables[i].max = largest[i];
        tables[i].count = bytes / ((smallest[i] + largest[i]) / 2) + 1;
        tables[i].touch = largest[i];
        tables[i].random = &worker->random;
        slots_open(&tables[i]);
    }
    worker->state = tables;
}

static void churn_work(struct worker *worker)
{
    const struct params *params = worker->team->params;
    struct slots *tables = worker->state;
    uint64_t begin_ns = clock_ns(), now_ns = begin_ns;
    while (now_ns - begin_ns < params->ms * 1000000) {
        for (unsigned i = 0; i < 1000; i++) {
            slots_step(&tables[i % 10 ? SMALL : MEDIUM]);
        }
        slots_step(&tables[LARGE]);
        worker->ops += 1001;
        now_ns = clock_ns();
        if (worker->index == 0 && !first_kib && now_ns - begin_ns >= params->first_ms * 1000000)
            first_kib = memory_rss_kib();
    }
    if (worker->index == 0)
        last_kib = memory_rss_kib();
}

static void churn_finish(struct worker *worker)
{
    struct slots *tables = worker->state;
    for (unsigned i = 0; i < TABLES; i++)
        worker->errors += slots_close(&tables[i]);
    pages_unmap(tables, TABLES * sizeof(*tables));
}

int main(int argc, char **argv)
{
    struct params params = {.threads = 1, .mib = 64, .ms = 600, .first_ms = 100};
    const struct arg args[] = {
        {"threads", ARG_COUNT, &params.threads, "threads that share the live size out"},
        {"mib", ARG_COUNT, &params.mib, "live MiB"},
        {"ms", ARG_COUNT, &params.ms, "how long"},
        {"first_ms", ARG_COUNT, &params.first_ms, "when memory is read for the first time"},
    };
    ARGS_READ("churn", argc, argv, args);
    if (!params.threads || params.first_ms >= params.ms)
        args_reject("threads, first_ms", "a thread at least, first_ms below ms");
    const struct team team = {
        .threads = params.threads, .setup = churn_setup, .work = churn_work, .finish = churn_finish, .params = &params};
    struct outcome outcome = team_run(&team);
    result_begin("churn", params.threads, outcome.ops, outcome.ns);
    result_count("mib", params.mib);
    result_count("rss_first_kib", first_kib);
    result_count("rss_last_kib", last_kib);
    result_real("growth_ratio", first_kib ? (double)last_kib / (double)first_kib : 0);
    return result_end(outcome.errors);
}
