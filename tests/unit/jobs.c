/* SPDX-License-Identifier: MIT
 *
 * The manager's jobs without the manager: a clock of our own, demand of our own.
 */
#include "manager/jobs.h"

#include "heap/ample.h"
#include "heap/large.h"
#include "heap/prefault_pool.h"
#include "heap/span.h"
#include "manager/headroom.h"
#include "manager/report.h"
#include "options/options.h"
#include "unit.h"

#define MS     1000000ull
#define PERIOD (400 * MS)

/* A look at the clock takes some time, and nothing else any; the thread is always on a processor: nothing depends on
 * the machine's load. */
uint64_t __wrap_os_now_ns(void);
uint64_t __wrap_os_thread_cpu_us(void);

static uint64_t clock_ns = 1000 * MS, look_ns = MS / 100;

uint64_t __wrap_os_now_ns(void)
{
    return clock_ns += look_ns;
}

uint64_t __wrap_os_thread_cpu_us(void)
{
    return __wrap_os_now_ns() / 1000;
}

static uint32_t taken[8192];
static unsigned taken_count;

static void grow(unsigned superblocks)
{
    while (superblocks-- > 0)
        EXPECT(span_take(span_dense, 1, 1, &taken[taken_count++]));
}

static void shrink_to(unsigned superblocks)
{
    while (taken_count > superblocks)
        span_give(taken[--taken_count], 1);
}

/* Nothing is due before anybody was roused, however late it is. */
static void idle_means_no_wakeups(void)
{
    struct prefault_pool_counts before = prefault_pool_counts();
    EXPECT_EQ(jobs_run(0), UINT64_MAX);
    EXPECT_EQ(jobs_run(UINT64_MAX / 2), UINT64_MAX);
    EXPECT_EQ(prefault_pool_counts().provided_bytes, before.provided_bytes);
}

/* Demand runs provision at once and reclaim not at all. */
static void demand_is_served_at_once(uint64_t now)
{
    size_t purged = span_counts().purged_bytes;
    clock_ns += 1000 * MS;
    jobs_rouse(job_on_demand, now);
    while (jobs_run(now) == now + 1 * MS)
        now += MS; /* its budget ended */
    EXPECT(prefault_pool_counts().reserve_bytes > 0);
    EXPECT_EQ(span_counts().purged_bytes, purged);
}

/* Runs whatever is due until `end`; when the next is. */
static uint64_t run_until(uint64_t next, uint64_t end)
{
    while (next < end)
        next = jobs_run(next);
    return next;
}

/* Purges on the clock, at the second look, and stops when nothing is left. */
static void the_clock_runs_while_there_is_something_to_do(uint64_t now)
{
    for (unsigned i = 0; i < 512; i++)
        span_give(taken[--taken_count], 1);
    size_t purged = span_counts().purged_bytes;
    jobs_rouse(job_on_clock, now);
    EXPECT_EQ(jobs_run(now), now + 20 * MS); /* collapse looks, and finds nothing */
    EXPECT_EQ(run_until(now + 20 * MS, now + PERIOD), now + PERIOD);
    EXPECT_EQ(jobs_run(now + PERIOD - 1), now + PERIOD);
    uint64_t next = run_until(now + PERIOD, now + 2 * PERIOD); /* looks */
    EXPECT_EQ(next, now + 2 * PERIOD);
    EXPECT_EQ(span_counts().purged_bytes, purged);
    next = run_until(next, next + 1); /* takes what is still the same */
    EXPECT(span_counts().purged_bytes - purged >= 512 * SLICE_BYTES);
    next = run_until(next, now + 20 * PERIOD);
    EXPECT_EQ(next, UINT64_MAX);
    EXPECT_EQ(span_counts().dirty_bytes, 0);
    EXPECT_EQ(prefault_pool_counts().reserve_bytes, 0);
}

/* What collapse says: how long until it looks again; 0: it has found nothing. */
static uint64_t beside_ns;

uint64_t __wrap_collapse_next(uint64_t now_ns);
uint64_t __wrap_collapse_next(uint64_t now_ns)
{
    (void)now_ns;
    return beside_ns;
}

/* A job beside the clock that will be due does not make the clock run; roused, it runs. */
static void the_clock_stops_beside_what_goes_on(uint64_t now)
{
    beside_ns = 100 * PERIOD;
    jobs_rouse(job_on_clock, now);
    EXPECT(!jobs_clock_has_stopped());
    EXPECT_EQ(run_until(now, now + 20 * PERIOD), now + 20 * MS + 100 * PERIOD);
    EXPECT(jobs_clock_has_stopped());
    now += 20 * PERIOD;
    size_t purged = span_counts().purged_bytes;
    for (unsigned i = 0; i < 512; i++)
        span_give(taken[--taken_count], 1);
    jobs_rouse(job_on_clock, now);
    EXPECT(!jobs_clock_has_stopped());
    run_until(now + PERIOD, now + 20 * PERIOD);
    EXPECT(span_counts().purged_bytes - purged >= 512 * SLICE_BYTES);
    beside_ns = 0;
    EXPECT_EQ(run_until(now, now + 200 * PERIOD), UINT64_MAX);
    grow(512);
}

/* A program that frees and regrows within the period keeps its pages, however often; one that stays small does not. */
static void who_regrows_in_time_keeps_its_pages(uint64_t now)
{
    enum { spans = 200 };
    unsigned before = taken_count;
    grow(spans);
    for (unsigned i = before; i < taken_count; i++)
        *(volatile uint64_t *)slice_address(taken[i]) = 0x5a5a;
    for (int round = 0; round < 10; round++, now += PERIOD) {
        for (unsigned i = before; i < taken_count; i++)
            span_give(taken[i], 1);
        jobs_rouse(job_on_clock, now);
        run_until(now, now + PERIOD + 1); /* a look at what was freed */
        for (unsigned i = before; i < taken_count; i++)
            EXPECT_EQ(*(volatile uint64_t *)slice_address(taken[i]), 0x5a5a);
        taken_count = before;
        grow(spans);
    }
    for (unsigned i = before; i < taken_count; i++)
        *(volatile uint64_t *)slice_address(taken[i]) = 0x5a5a;
    shrink_to(before);
    jobs_rouse(job_on_clock, now);
    uint64_t next = run_until(now, now + 40 * PERIOD);
    for (unsigned i = before; i < before + spans; i++)
        EXPECT_EQ(*(volatile uint64_t *)slice_address(taken[i]), 0);
    EXPECT_EQ(next, UINT64_MAX);
}

/* Hardly free superblocks are left alone while the heap changes, and purged before the clock stops. */
static void before_it_sleeps_it_gives_all_back(uint64_t now)
{
    enum { blocks = 600, bytes = 8192, step = 7 };
    static char *block[blocks];
    for (int i = 0; i < blocks; i++) {
        EXPECT((block[i] = malloc(bytes)) != NULL);
        memset(block[i], 1 + i % 100, bytes);
    }
    for (int i = 0; i < blocks; i += step)
        free(block[i]);
    size_t purged = span_counts().purged_bytes;
    jobs_rouse(job_on_clock, now);
    EXPECT_EQ(run_until(now, now + 40 * PERIOD), UINT64_MAX);
    EXPECT(span_counts().purged_bytes - purged >= blocks / step * bytes * 3ul / 4);
    for (int i = 0; i < blocks; i++)
        if (i % step != 0)
            EXPECT(block[i][0] == 1 + i % 100 && block[i][bytes - 1] == 1 + i % 100);
    for (int i = 0; i < blocks; i++)
        if (i % step != 0)
            free(block[i]);
    jobs_rouse(job_on_clock, now + 50 * PERIOD);
    run_until(now + 50 * PERIOD, now + 90 * PERIOD);
}

/* Freed mappings beyond what is kept are unmapped on demand, not on the clock. */
static void what_is_deferred_is_unmapped_on_demand(uint64_t now)
{
    bool zero;
    atomic_store(&unmap_is_async, true);
    void *p = large_take(MAPPING_CACHE_BYTES * 2, 16, &zero);
    EXPECT(p != NULL && zero);
    atomic_store(&heap_demand, demand_none);
    EXPECT(mapping_give(p));
    EXPECT_EQ(atomic_load(&heap_demand), demand_raised);
    EXPECT(large_counts().cached_bytes >= MAPPING_CACHE_BYTES * 2);
    jobs_rouse(job_on_demand, now);
    run_until(now, now + 1);
    EXPECT_EQ(large_counts().cached_bytes, 0);
    atomic_store(&unmap_is_async, false);
    run_until(now + 1, now + 100 * MS);
}

size_t __wrap_os_machine_headroom(void);
size_t __wrap_os_groups_headroom(void);
bool __wrap_os_may_map_freely(void);
unsigned __wrap_os_memory_stall_percent(void);

static bool maps_freely = true;
static size_t headroom = SIZE_MAX, groups_headroom = SIZE_MAX;
static unsigned headroom_looks, groups_looks, stall_looks;

size_t __wrap_os_machine_headroom(void)
{
    headroom_looks++;
    return headroom;
}

size_t __wrap_os_groups_headroom(void)
{
    groups_looks++;
    return groups_headroom;
}

bool __wrap_os_may_map_freely(void)
{
    return maps_freely;
}

unsigned __wrap_os_memory_stall_percent(void)
{
    stall_looks++;
    return 0;
}

/* What was seen before no longer holds. */
static void headroom_is(size_t bytes)
{
    headroom = bytes;
    headroom_use(SIZE_MAX / 2);
    provision_start();
}

/* Shortage ends when it ends, and the next one is not made to wait for one of long ago. */
static void it_is_asked_each_time_whether_memory_is_short(uint64_t now)
{
    const unsigned yields_little = 14;
    headroom_is(1 << 20);
    for (unsigned i = 0; i < yields_little; i++) { /* the next purge would be the later each time */
        clock_ns += 40000 * MS;
        jobs_rouse(job_on_clock, now);
        run_until(now, now + 500 * MS + 1);
        now += 1000 * MS;
    }
    EXPECT(atomic_load(&memory_is_short));
    headroom_is(SIZE_MAX);
    jobs_rouse(job_on_clock, now);
    run_until(now, now + 500 * MS + 1);
    EXPECT(!atomic_load(&memory_is_short));
    clock_ns += 40000 * MS;
    grow(600);
    shrink_to(taken_count - 600);
    headroom_is(1 << 20);
    size_t purged = span_counts().purged_bytes;
    jobs_rouse(job_on_clock, now + 1000 * MS);
    run_until(now + 1000 * MS, now + 1500 * MS + 1);
    EXPECT(span_counts().purged_bytes > purged);
    headroom_is(SIZE_MAX);
    jobs_rouse(job_on_clock, now + 2000 * MS);
    run_until(now + 2000 * MS, now + 2500 * MS + 1);
}

/* Near a limit nothing is prefaulted, and what is free goes back at the first look. */
static void short_memory_is_given_back_at_once(uint64_t now)
{
    grow(600);
    clock_ns += 1000 * MS;
    jobs_rouse(job_on_demand, now);
    run_until(now, now + 20 * MS);
    EXPECT(prefault_pool_counts().reserve_bytes > 0);
    headroom_is(1 << 20);
    jobs_rouse(job_on_clock, now);
    run_until(now, now + 500 * MS + 1);
    EXPECT_EQ(prefault_pool_counts().reserve_bytes, 0);
    EXPECT_EQ(span_counts().dirty_bytes, 0);
    size_t prefaulted = prefault_pool_counts().provided_bytes;
    grow(100);
    jobs_rouse(job_on_demand, now + 600 * MS);
    run_until(now + 600 * MS, now + 700 * MS);
    EXPECT_EQ(prefault_pool_counts().provided_bytes, prefaulted);
    headroom = SIZE_MAX;
}

bool __wrap_os_cpus_are_busy(void);

static bool busy;
static unsigned busy_looks;

bool __wrap_os_cpus_are_busy(void)
{
    busy_looks++;
    return busy;
}

/* Bytes prefaulted for a program that went on growing by so many superblocks; no rest is left over. */
static size_t prefaulted_for(unsigned superblocks, uint64_t now)
{
    grow(superblocks);
    size_t before = prefault_pool_counts().provided_bytes; /* the program may have cleared a page itself */
    clock_ns += 70 * MS;
    jobs_rouse(job_on_demand, now);
    run_until(now, now + 20 * MS);
    return prefault_pool_counts().provided_bytes - before;
}

/* By more than a pool holds. */
static size_t prefaulted_on_demand(uint64_t now)
{
    return prefaulted_for(400, now);
}

/* What has grown by so much is kept more than a piece prefaulted.  Returns when it did. */
static uint64_t grown_large(uint64_t now)
{
    bool changed = false;
    span_purge(purge_force, 0, &changed); /* what was used is not prefaulted */
    for (int i = 0; i < 6; i++, now += 100 * MS)
        prefaulted_on_demand(now);
    return now;
}

/* A program that grows slowly is kept no large pool. */
static void who_takes_little_is_kept_little(uint64_t now)
{
    unsigned before = taken_count;
    now = grown_large(now);
    size_t large = prefault_pool_counts().reserve_bytes;
    EXPECT(large >= 3 * PREFAULT_PIECE_MAX);
    enum { little = 8 };
    for (; prefault_pool_counts().reserve_bytes > PREFAULT_PIECE_MAX + little * SLICE_BYTES; now += 100 * MS)
        EXPECT_EQ(prefaulted_for(little, now), 0);
    EXPECT_EQ(prefault_pool_counts().target_bytes, PREFAULT_PIECE_MAX);
    shrink_to(before);
}

/* What the system tells about memory and processors is asked for once, not for each piece; what little is left of a
 * limit is asked for again. */
static void the_system_is_not_asked_for_each_piece(uint64_t now)
{
    unsigned before = taken_count;
    now = grown_large(now);
    headroom_is(SIZE_MAX);
    headroom_looks = busy_looks = 0;
    EXPECT(prefaulted_on_demand(now) >= 2 * PREFAULT_PIECE_MAX);
    grow(100);
    jobs_rouse(job_on_demand, now + 20 * MS); /* by a clock of its own, less than a millisecond later */
    run_until(now + 20 * MS, now + 40 * MS);
    EXPECT_EQ(headroom_looks, 0); /* it was looked at before, and there is as much as could be */
    EXPECT_EQ(busy_looks, 1);
    headroom_is(MEMORY_HEADROOM_MIN + 16 * 3 * PREFAULT_PIECE_MAX); /* a part of it: three pieces */
    headroom_looks = 0;
    EXPECT_EQ(prefaulted_on_demand(now + 100 * MS), 4 * PREFAULT_PIECE_MAX);
    EXPECT_EQ(headroom_looks, 2);
    headroom = SIZE_MAX;
    shrink_to(before);
}

/* A run ends when its budget does, and is to go on. */
static void a_run_keeps_to_its_budget(uint64_t now)
{
    unsigned before = taken_count;
    now = grown_large(now);
    grow(400);
    clock_ns += 70 * MS;
    look_ns = 20 * MS; /* all of it */
    size_t prefaulted = prefault_pool_counts().provided_bytes;
    jobs_rouse(job_on_demand, now);
    EXPECT_EQ(jobs_run(now), now + 1 * MS);
    EXPECT_EQ(prefault_pool_counts().provided_bytes - prefaulted, PREFAULT_PIECE_MAX);
    look_ns = MS / 100;
    run_until(now + 1 * MS, now + 20 * MS);
    shrink_to(before);
}

static struct os_place place = {1, 0};
static unsigned leaves;

struct os_place __wrap_os_current_place(void);
struct os_place __wrap_os_current_place(void)
{
    return place;
}

bool __wrap_os_leave_cpu(unsigned cpu);
bool __wrap_os_leave_cpu(unsigned cpu)
{
    bool leaves_it = cpu != OS_CPU_UNKNOWN && cpu == place.cpu;
    leaves += leaves_it;
    return leaves_it;
}

/* The next that asks is at `cpu`, and so is the manager. */
static void move_to(unsigned cpu)
{
    place.cpu = cpu;
    atomic_store(&heap_demand, demand_none);
}

/* Who prefaults on the cpu of the thread that asked leaves it; not again and again; and nobody who may be elsewhere. */
static void the_cpu_of_who_asks_is_left(uint64_t now)
{
    unsigned before = taken_count;
    now = grown_large(now);
    leaves = 0;
    EXPECT(prefaulted_on_demand(now) > PREFAULT_PIECE_MAX); /* in several pieces */
    EXPECT_EQ(leaves, 1);
    move_to(0);
    EXPECT(prefaulted_on_demand(now + 100 * MS) > 0);
    EXPECT_EQ(leaves, 2);
    move_to(OS_CPU_UNKNOWN);
    EXPECT(prefaulted_on_demand(now + 200 * MS) > 0);
    EXPECT_EQ(leaves, 2);
    move_to(1);
    grow(400);
    clock_ns += 70 * MS;
    place.cpu = 0; /* the manager is elsewhere than who asked */
    size_t prefaulted = prefault_pool_counts().provided_bytes;
    jobs_rouse(job_on_demand, now + 300 * MS);
    run_until(now + 300 * MS, now + 320 * MS);
    EXPECT(prefault_pool_counts().provided_bytes > prefaulted);
    EXPECT_EQ(leaves, 2);
    shrink_to(before);
}

/* Where no processor is to spare, and not just for a moment, nothing is prefaulted; unless the user insists. */
static void who_has_no_processor_to_spare_is_left_alone(uint64_t now)
{
    unsigned before = taken_count;
    EXPECT(prefaulted_on_demand(now) > 0);
    busy = true;
    clock_ns += 10000 * MS; /* one was to spare lately, so it is not looked for at once */
    EXPECT(prefaulted_on_demand(now + 100 * MS) > 0);
    EXPECT_EQ(prefaulted_on_demand(now + 200 * MS), 0);
    EXPECT_EQ(prefaulted_on_demand(now + 300 * MS), 0);
    clock_ns += 1000 * MS;
    EXPECT(prefaulted_on_demand(now + 350 * MS) > 0); /* long ago does not count */
    EXPECT_EQ(prefaulted_on_demand(now + 400 * MS), 0);
    option_value[option_manager] = manager_on;
    EXPECT(prefaulted_on_demand(now + 450 * MS) > 0);
    option_value[option_manager] = manager_off;
    busy = false;
    EXPECT(prefaulted_on_demand(now + 500 * MS) > 0);
    shrink_to(before);
}

/* One job has found nothing and is off the clock; another still sees the heap change: what is freed then is found,
 * though no slow path wakes a manager that is not asleep. */
static void while_the_heap_changes_all_jobs_look(uint64_t now)
{
    report_open();
    unsigned before = taken_count;
    uint64_t next = now;
    clock_ns += 1000 * MS; /* nothing rests any more */
    jobs_rouse(job_on_clock, now);
    for (int i = 0; i < 10; i++) {
        grow(1); /* nothing to reclaim, something to report */
        next = jobs_run(next);
        EXPECT(next != UINT64_MAX);
    }
    shrink_to(before);
    for (int i = 0; i < 20 && next != UINT64_MAX; i++)
        next = jobs_run(next);
    EXPECT_EQ(next, UINT64_MAX);
    EXPECT_EQ(span_counts().dirty_bytes, 0);
    report_close();
}

/* A program that grows for a minute, far away from limits: a few files each minute, and of those of the groups one. */
static void away_from_limits_hardly_a_file_is_read(uint64_t now)
{
    const uint64_t end_ns = (headroom_is((size_t)64 << 30), clock_ns) + 60000 * MS;
    unsigned before = taken_count;
    headroom_looks = groups_looks = stall_looks = busy_looks = 0;
    for (; clock_ns < end_ns; now += 100 * MS) {
        span_purge(purge_force, 0, &(bool){0});
        grow(100);
        clock_ns += 70 * MS;
        jobs_rouse(job_on_demand, now);
        jobs_rouse(job_on_clock, now);
        run_until(now, now + 501 * MS);
        shrink_to(before);
    }
    unit_say("%u looks at the machine, %u at groups, %u at pressure, %u at processors in a minute\n", headroom_looks,
             groups_looks, stall_looks, busy_looks);
    EXPECT(headroom_looks > 0 && headroom_looks <= 10 && groups_looks <= 2 && stall_looks == 0 && busy_looks <= 25);
    /* Where a group has a limit it is looked at each time; near one, pressure too. */
    groups_headroom = MEMORY_HEADROOM_MIN * 2;
    clock_ns += 61000 * MS;
    groups_looks = 0;
    for (int i = 0; i < 10; i++, now += 1000 * MS) {
        clock_ns += 11000 * MS;
        jobs_rouse(job_on_clock, now);
        run_until(now, now + 501 * MS);
    }
    EXPECT(groups_looks >= 10 && stall_looks > 0);
    groups_headroom = headroom = SIZE_MAX;
}

/* If so much of what is there were free. */
static bool may_keep(size_t bytes)
{
    size_t there = heap_in_use_bytes() + heap_kept_bytes();
    return ample_for(bytes, there - min_size(there, bytes));
}

static bool is_ample(size_t bytes)
{
    clock_ns += 61000 * MS;
    provision_start();
    return may_keep(bytes);
}

/* A quarter of what is left, what is kept already among it, if that is known and address space has no limit.  Under a
 * group's limit only until what was seen is out of date: until the time has passed in which others may have taken it,
 * or the process has taken a sixteenth. */
static void what_may_be_kept(void)
{
    const size_t left = 40 * MEMORY_HEADROOM_MIN;
    atomic_store(&unmap_is_async, true);
    EXPECT(!is_ample(1));
    headroom = MEMORY_HEADROOM_MIN + left;
    EXPECT(is_ample(0));
    const size_t quarter = (left + heap_kept_bytes()) / 4, fewer = (left / 2 + heap_kept_bytes()) / 4;
    EXPECT(is_ample(quarter) && !is_ample(quarter + 1));
    maps_freely = false;
    EXPECT(!is_ample(1));
    maps_freely = true;
    EXPECT(is_ample(quarter));
    clock_ns += 30000 * MS;
    EXPECT(may_keep(quarter));
    grow(left / 16 / SLICE_BYTES + 1);
    EXPECT(may_keep(quarter));

    groups_headroom = MEMORY_HEADROOM_MIN + left / 2;
    EXPECT(is_ample(fewer) && !is_ample(fewer + 1));
    clock_ns += 9000 * MS;
    EXPECT(may_keep(fewer));
    clock_ns += 2000 * MS;
    atomic_store(&heap_demand, demand_none);
    EXPECT(!may_keep(1) && !demand_is_none()); /* the manager looks again */
    EXPECT(is_ample(fewer));
    unsigned before = taken_count;
    grow(left / 2 / 16 / SLICE_BYTES + 1);
    EXPECT(!may_keep(1));
    shrink_to(before); /* what is kept counts, too */
    EXPECT(!may_keep(1));
    provision_start(); /* no time has passed, and no more is in use */
    EXPECT(may_keep(1));
    groups_headroom = MEMORY_HEADROOM_MIN;
    EXPECT(!is_ample(heap_kept_bytes() / 4 + 1));
    groups_headroom = SIZE_MAX;
    EXPECT(is_ample(quarter));
    atomic_store(&unmap_is_async, false);
    EXPECT(!may_keep(1));
    headroom = SIZE_MAX;
}

int main(void)
{
    unit_print_mode();
    unit_watchdog(60);
    atomic_store(&manager_is_missing, false); /* it is us */
    idle_means_no_wakeups();
    grow(2000);
    demand_is_served_at_once(1000 * MS);
    the_clock_runs_while_there_is_something_to_do(5000 * MS);
    short_memory_is_given_back_at_once(20000 * MS);
    it_is_asked_each_time_whether_memory_is_short(30000 * MS);
    while_the_heap_changes_all_jobs_look(40000 * MS);
    who_has_no_processor_to_spare_is_left_alone(50000 * MS);
    who_takes_little_is_kept_little(55000 * MS);
    the_system_is_not_asked_for_each_piece(56000 * MS);
    a_run_keeps_to_its_budget(57000 * MS);
    the_cpu_of_who_asks_is_left(58000 * MS);
    who_regrows_in_time_keeps_its_pages(60000 * MS);
    before_it_sleeps_it_gives_all_back(90000 * MS);
    the_clock_stops_beside_what_goes_on(130000 * MS);
    what_is_deferred_is_unmapped_on_demand(240000 * MS);
    away_from_limits_hardly_a_file_is_read(300000 * MS);
    what_may_be_kept();
    return 0;
}
