/* SPDX-License-Identifier: MIT
 *
 * Why: the thesis (appendices C and F) found its lock-free library held back by the price of atomic instructions, and
 * LFMalloc replaced them by restartable sections.  This measures both sides on the machine at hand: an increment of one
 * counter by a plain instruction, LOCK XADD, LOCK CMPXCHG, CMPXCHG without the prefix (x86-64), and by a
 * compare-and-store inside a restartable section.
 *
 * Each figure is time per increment less that of the empty loop; `ns_per_op` is LOCK XADD's own.  With threads=N the
 * threads of a variant share one counter (restartable sections: one per cpu, which is their point).  Every variant's
 * final count is checked, except those that are not atomic between threads when there is more than one.
 */
#define _GNU_SOURCE
#include "args.h"
#include "memory.h"
#include "rcs_cas.h"
#include "result.h"
#include "sink.h"
#include "team.h"

#include <stdio.h>

enum { CPUS_MAX = 4096 };

struct cell {
    uint64_t value;
} __attribute__((aligned(128)));

static uint64_t increments;
static struct cell counter;
static struct cell *counter_of_cpu;
static uint64_t x_retries;

static void count_nothing(struct worker *worker)
{
    for (uint64_t i = 0; i < increments; i++)
        sink(i);
    worker->ops = increments;
}

static void count_plain(struct worker *worker)
{
    for (uint64_t i = 0; i < increments; i++) {
        counter.value++;
        sink(&counter); /* one load and one store each time, as in the original */
    }
    worker->ops = increments;
}

static void count_fetch_add(struct worker *worker)
{
    for (uint64_t i = 0; i < increments; i++) {
        uint64_t old = __atomic_fetch_add(&counter.value, 1, __ATOMIC_SEQ_CST);
        sink(old);
    }
    worker->ops = increments;
}

static void count_compare_and_swap(struct worker *worker)
{
    for (uint64_t i = 0; i < increments; i++) {
        uint64_t seen = __atomic_load_n(&counter.value, __ATOMIC_RELAXED);
        while (!__atomic_compare_exchange_n(&counter.value, &seen, seen + 1, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED))
            ;
    }
    worker->ops = increments;
}

#if defined(__x86_64__)
/* Whole on one cpu, not between cpus: an instruction cannot be interrupted half-way. */
static void count_unlocked_compare_and_swap(struct worker *worker)
{
    for (uint64_t i = 0; i < increments; i++) {
        uint64_t seen = *(volatile uint64_t *)&counter.value;
        uint64_t wanted = seen + 1;
        __asm__ volatile("cmpxchgq %2, %1" : "+a"(seen), "+m"(counter.value) : "r"(wanted) : "cc", "memory");
    }
    worker->ops = increments;
}
#endif

#if RCS_EMULATED
static void count_restartable(struct worker *worker)
{
    struct rcs_area *area = rcs_area_of_thread();
    uint64_t retries = 0;
    for (uint64_t i = 0; i < increments; i++) {
        for (;;) {
            uint32_t cpu = rcs_cpu(area);
            uint64_t *value = &counter_of_cpu[cpu % CPUS_MAX].value;
            uint64_t seen = *(volatile uint64_t *)value;
            if (rcs_compare_and_store(area, cpu, value, seen, seen + 1) == RCS_DONE)
                break;
            retries++;
        }
    }
    __atomic_fetch_add(&x_retries, retries, __ATOMIC_RELAXED);
    worker->ops = increments;
}
#endif

static uint64_t counted(void)
{
    uint64_t sum = counter.value;
    for (unsigned i = 0; i < CPUS_MAX; i++) {
        sum += counter_of_cpu[i].value;
        counter_of_cpu[i].value = 0;
    }
    counter.value = 0;
    return sum;
}

/* Runs one variant; ns per increment.  `exact`: its count must come out right. */
static double variant_run(void (*work)(struct worker *), uint64_t threads, bool exact, struct outcome *all)
{
    const struct team team = {.threads = threads, .work = work};
    struct outcome outcome = team_run(&team);
    uint64_t sum = counted();
    all->ops += outcome.ops;
    all->ns += outcome.ns;
    if (exact && sum != outcome.ops) {
        fprintf(stderr, "atomic_latency: counted %llu of %llu\n", (unsigned long long)sum,
                (unsigned long long)outcome.ops);
        all->errors++;
    }
    return (double)outcome.ns / (double)outcome.ops;
}

int main(int argc, char **argv)
{
    uint64_t threads = 1;
    increments = 15000000;
    const struct arg args[] = {
        {"threads", ARG_COUNT, &threads, "threads of each variant"},
        {"ops", ARG_COUNT, &increments, "increments per thread and variant"},
    };
    ARGS_READ("atomic_latency", argc, argv, args);
    if (!increments)
        args_reject("ops", "at least 1");
    counter_of_cpu = pages_map(CPUS_MAX * sizeof(*counter_of_cpu));
    struct outcome all = {.ops = 0};
    double base = variant_run(count_nothing, threads, false, &all);
    double plain = variant_run(count_plain, threads, threads == 1, &all) - base;
    struct outcome before = all;
    double fetch_add = variant_run(count_fetch_add, threads, true, &all) - base;
    uint64_t fetch_add_ops = all.ops - before.ops, fetch_add_ns = all.ns - before.ns;
    double cas = variant_run(count_compare_and_swap, threads, true, &all) - base;
#if defined(__x86_64__)
    double unlocked_cas = variant_run(count_unlocked_compare_and_swap, threads, threads == 1, &all) - base;
#endif
#if RCS_EMULATED
    bool has_rcs = rcs_is_available();
    double rcs_cas = has_rcs ? variant_run(count_restartable, threads, true, &all) - base : 0;
#else
    bool has_rcs = false;
#endif
    result_begin("atomic_latency", threads, fetch_add_ops, fetch_add_ns);
    result_real("base_ns", base);
    result_real("plain_ns", plain);
    result_real("xadd_ns", fetch_add);
    result_real("cas_ns", cas);
#if defined(__x86_64__)
    result_real("unlocked_cas_ns", unlocked_cas);
#endif
    result_text("rcs", has_rcs ? "yes" : "no");
#if RCS_EMULATED
    if (has_rcs) {
        result_real("rcs_cas_ns", rcs_cas);
        result_count("rcs_retries", x_retries);
        result_real("cas_over_rcs", rcs_cas > 0 ? cas / rcs_cas : 0);
    }
#endif
    return result_end(all.errors);
}
