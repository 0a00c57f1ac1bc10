/* SPDX-License-Identifier: MIT
 *
 * Whether there is a manager at all: where it is switched off, where the program has one cpu only or a quota below two,
 * where no thread may be made, the program goes on inline and no thread is seen.  Where cpus or time are taken away
 * while it runs it goes, and comes back when they are given back.
 *
 * The quota is asked for in a file system: the test puts one of its own, with the file it wants, where the control
 * groups are mounted (in a mount namespace nobody else sees), so that it needs no control groups.
 */
#include "support/cgroup.h"
#include "watch.h"
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>

/* The manager's own choice, which a variable of the caller's environment would override. */
static void expect_auto(void)
{
    char value[16];
    if (!test_is_sutler())
        SKIP("another malloc");
    CHECK(sutler_option_get("manager", value, sizeof value) == 0 && strcmp(value, "auto") == 0);
}

static void uses_the_heap(struct rng *rng)
{
    hoard_drop(9);
    hoard_grow(rng, 20 * MIB);
    hoard_check();
    hoard_drop(0);
}

static bool can_have_one(void)
{
    int cpus[64];
    return proc_cpus(cpus, 64) >= 2 && !proc_is_filtered();
}

static void needs_place_for_one(void)
{
    if (!can_have_one())
        SKIP("one cpu, or a filter");
}

/* Starts one, if there may be one here. */
static void needs_manager(struct rng *rng)
{
    needs_place_for_one();
    if (manager_try(rng) == 0)
        SKIP("no manager is wanted here (a quota?)");
}

/* The contrast to all the others. */
static void started(uint64_t seed)
{
    struct rng rng = {seed};
    expect_auto();
    hoard_grow(&rng, 5 * MIB);
    CHECK_MSG(manager_of(getpid()) == 0, "a manager for a small program");
    needs_manager(&rng);
    uses_the_heap(&rng);
}

static uint64_t own_cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

/* What unmapping so much costs the thread that does it. */
static uint64_t unmapping_ns(size_t bytes)
{
    char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(p != MAP_FAILED);
    memset(p, 1, bytes);
    uint64_t before = own_cpu_ns();
    munmap(p, bytes);
    return own_cpu_ns() - before;
}

/* One block and nothing else: free leaves the unmapping of it to a manager, started for that.  On a full machine the
 * manager may have done it before free returns; so what counts is whose time it took. */
static void one_large_block(uint64_t seed)
{
    const size_t bytes = 200 * MIB;
    uint64_t least_ns = UINT64_MAX;
    expect_auto();
    needs_place_for_one();
    (void)seed;
    CHECK(prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) == 0); /* pages enough for the unmapping to take its time */
    const uint64_t unmapping = unmapping_ns(bytes);
    for (int i = 0; i < 5 && least_ns > unmapping / 2; i++) { /* few: later other slow paths would have started one */
        char *p = malloc(bytes);
        CHECK(p != NULL);
        memset(p, 1, bytes);
        uint64_t before = own_cpu_ns();
        free(p);
        uint64_t ns = own_cpu_ns() - before;
        least_ns = ns < least_ns ? ns : least_ns;
        if (least_ns > unmapping / 2)
            sleep_us(1100000); /* no cpu was spare: for longer than a manager stays away then */
    }
    CHECK_MSG(least_ns <= unmapping / 2, "free unmaps it itself: %zu us, an munmap takes %zu", (size_t)least_ns / 1000,
              (size_t)unmapping / 1000);
    for (int i = 0; i < 1000 && proc_resident_bytes() > bytes / 2; i++)
        sleep_us(5000);
    CHECK_MSG(proc_resident_bytes() < bytes / 2, "%zu MiB stay", proc_resident_bytes() / MIB);
    CHECK_MSG(manager_of(getpid()) != 0, "there is no manager");
}

/* A manager is there to see whether it is filled; of itself it brings no memory to it. */
static void one_empty_block(uint64_t seed)
{
    (void)seed;
    expect_auto();
    CHECK(prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) == 0); /* a page is not to be two MiB */
    const size_t before = proc_resident_bytes(), page = 4096;
    char *p = malloc(200 * MIB);
    CHECK(p != NULL);
    for (size_t i = 0; i < 200 * MIB; i += 4 * MIB)
        p[i] = 1;
    sleep_us(20000);
    CHECK_MSG(proc_resident_bytes() < before + 50 * page + MIB, "%zu KiB came",
              (proc_resident_bytes() - before) / 1024);
    free(p);
}

static void one_cpu(uint64_t seed)
{
    struct rng rng = {seed};
    int cpus[64];
    expect_auto();
    proc_cpus(cpus, 64);
    proc_pin_tid(0, cpus[0]);
    manager_never(&rng, 1);
    uses_the_heap(&rng);
}

/* All threads, the manager among them, onto `count` cpus from number `from`. */
static void squeeze(const int *cpus, int from, int count)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    for (int i = 0; i < count; i++)
        CPU_SET(cpus[from + i], &set);
    pid_t tasks[TASKS_MOST];
    int task_count = tasks_of(getpid(), tasks);
    for (int i = 0; i < task_count; i++)
        sched_setaffinity(tasks[i], sizeof set, &set);
}

/* Works until the manager is there, or not there; a manager that sleeps, or is not there, takes slow paths to look. */
static void expect_manager(struct rng *rng, bool wanted)
{
    for (int i = 0; i < 1000 && (manager_of(getpid()) != 0) != wanted; i++) {
        hoard_grow(rng, 4 * MIB);
        if (hoard_bytes > 90 * MIB)
            hoard_drop(2);
        sleep_us(10000);
    }
    CHECK_MSG((manager_of(getpid()) != 0) == wanted, wanted ? "no manager comes back" : "the manager stays");
    hoard_check();
}

/* Everybody is moved onto one cpu, as by `taskset -a` or a cpuset, and back; and again. */
static void all_squeezed(uint64_t seed)
{
    struct rng rng = {seed};
    int cpus[64], count = proc_cpus(cpus, 64);
    expect_auto();
    needs_manager(&rng);
    for (int i = 0; i < 2; i++) {
        squeeze(cpus, i, 1);
        expect_manager(&rng, false);
        manager_never(&rng, 1);
        squeeze(cpus, 0, count);
        expect_manager(&rng, true);
    }
    uses_the_heap(&rng);
}

/* Only the program's thread is, as by `taskset -p` or itself. */
static void pinned_while_running(uint64_t seed)
{
    struct rng rng = {seed};
    int cpus[64], count = proc_cpus(cpus, 64);
    expect_auto();
    needs_manager(&rng);
    proc_pin_tid(0, cpus[0]);
    expect_manager(&rng, false);
    squeeze(cpus, 0, count);
    expect_manager(&rng, true);
}

/* It was on one cpu from its start and is let go. */
static void one_cpu_at_first(uint64_t seed)
{
    struct rng rng = {seed};
    int cpus[64], count = proc_cpus(cpus, 64);
    expect_auto();
    needs_place_for_one();
    proc_pin_tid(0, cpus[0]);
    manager_never(&rng, 1);
    squeeze(cpus, 0, count);
    expect_manager(&rng, true);
}

static void *pinned_growth(void *rng)
{
    int cpus[64];
    proc_cpus(cpus, 64);
    proc_pin_tid(0, cpus[0]);
    manager_never(rng, 2);
    return NULL;
}

/* A pinned thread of a program that is not is no reason to have none for good. */
static void one_thread_pinned(uint64_t seed)
{
    struct rng rng = {seed};
    pthread_t thread;
    expect_auto();
    needs_place_for_one();
    CHECK(pthread_create(&thread, NULL, pinned_growth, &rng) == 0 && pthread_join(thread, NULL) == 0);
    expect_manager(&rng, true);
}

static void cpus_taken_away(uint64_t seed)
{
    struct rng rng = {seed};
    int cpus[64], count = proc_cpus(cpus, 64);
    needs_manager(&rng);
    for (int i = 0; i < 12; i++) {
        squeeze(cpus, i % count, 1);
        hoard_grow(&rng, 10 * MIB);
        squeeze(cpus, 0, count);
        hoard_drop(3);
        squeeze(cpus, (i + 1) % count, 1);
        hoard_grow(&rng, 5 * MIB);
        hoard_drop(40);
    }
    squeeze(cpus, 0, count);
    expect_manager(&rng, true);
    hoard_drop(0);
}

/* A fork child of a program on one cpu decides for itself. */
static void child_of_one_cpu(uint64_t seed)
{
    struct rng rng = {seed};
    int cpus[64];
    proc_cpus(cpus, 64);
    needs_manager(&rng);
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        test_watchdog(30);
        pid_t tasks[TASKS_MOST];
        proc_pin_tid(0, cpus[0]);
        hoard_grow(&rng, 10 * MIB);
        sleep_us(20000);
        CHECK(tasks_of(getpid(), tasks) == 1);
        hoard_check();
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    expect_manager(&rng, true); /* it left for the fork */
}

static void no_threads_allowed(uint64_t seed)
{
    struct rng rng = {seed};
    struct rlimit one = {1, 1};
    if (geteuid() != 0)
        SKIP("needs root, to become somebody who has one process only");
    CHECK(setrlimit(RLIMIT_NPROC, &one) == 0);
    CHECK(setresuid(54321, 54321, 54321) == 0);
    manager_never(&rng, 1);
    uses_the_heap(&rng);
}

/* ---- a quota ---- */

static void own_group_write(const char *file, const char *value)
{
    own_group_write_of(2, file, value);
}

/* The manager's thread itself looks at the quota, and leaves: it may be seen once, for a moment, and on a full machine
 * that moment comes late. */
static void manager_only_looks(struct rng *rng)
{
    unsigned visits = 0;
    pid_t tasks[TASKS_MOST];
    hoard_grow(rng, START_BYTES);
    for (int i = 0; i < 20; i++) {
        bool is_there = tasks_of(getpid(), tasks) > 1;
        visits += is_there;
        for (int wait = 0; wait < 2500 && is_there; wait++) {
            sleep_us(2000);
            is_there = tasks_of(getpid(), tasks) > 1;
        }
        CHECK_MSG(!is_there, "a manager stays");
        CHECK_MSG(visits <= 1, "a manager comes again");
        hoard_grow(rng, MIB);
        sleep_us(2000);
    }
}

static void quota(uint64_t seed, const char *value, bool is_enough)
{
    struct rng rng = {seed};
    expect_auto();
    needs_place_for_one();
    own_groups();
    own_group_write("cpu.max", value);
    if (is_enough) {
        manager_start(&rng);
    } else {
        manager_only_looks(&rng);
    }
    uses_the_heap(&rng);
}

static void quota_below_two(uint64_t seed)
{
    quota(seed, "150000 100000\n", false);
}

static void quota_of_three(uint64_t seed)
{
    quota(seed, "300000 100000\n", true);
}

static void no_quota(uint64_t seed)
{
    quota(seed, "max 100000\n", true);
}

static void quota_changes(uint64_t seed)
{
    struct rng rng = {seed};
    expect_auto();
    needs_place_for_one();
    own_groups();
    own_group_write("cpu.max", "max 100000\n");
    manager_start(&rng);
    own_group_write("cpu.max", "100000 100000\n");
    expect_manager(&rng, false);
    uses_the_heap(&rng);
    own_group_write("cpu.max", "250000 100000\n");
    expect_manager(&rng, true);
}

/* The real thing, where the cpu controller belongs to version 1 and we may make a group of our own. */
static void real_quota_changes(uint64_t seed)
{
    struct rng rng = {seed};
    static char directory[256];
    char path[300], own[32];
    expect_auto();
    needs_manager(&rng);
    snprintf(directory, sizeof directory, CGROUPS "/cpu/sutler-test-%d", getpid());
    if (mkdir(directory, 0755) != 0)
        SKIP("no cpu group can be made here: errno %d", errno);
    pid_t child = fork(); /* the group is to be removed whatever happens */
    CHECK(child >= 0);
    if (child == 0) {
        test_watchdog(40);
        snprintf(own, sizeof own, "%d", getpid());
        snprintf(path, sizeof path, "%s/cgroup.procs", directory);
        write_file(path, own);
        snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", directory);
        manager_start(&rng);
        write_file(path, "150000");
        expect_manager(&rng, false);
        write_file(path, "-1");
        expect_manager(&rng, true);
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child);
    for (int i = 0; i < 200 && rmdir(directory) != 0; i++)
        sleep_us(10000);
    CHECK_MSG(status == 0, "status 0x%x", (unsigned)status);
}

/* ---- near a limit of memory nothing is made ready ahead ---- */

static size_t provided_under(uint64_t seed, int version, const char *limit)
{
    struct rng rng = {seed};
    own_groups();
    own_group_write_of(version, version == 2 ? "memory.max" : "memory.limit_in_bytes", limit);
    own_group_write_of(version, version == 2 ? "memory.current" : "memory.usage_in_bytes", "251658240\n");
    own_group_write_of(version, "memory.stat",
                       version == 2 ? "anon 251658240\ninactive_file 0\n" : "total_inactive_file 0\n");
    manager_start(&rng);
    hoard_grow(&rng, 150 * MIB);
    sleep_us(20000);
    struct sutler_stats stats;
    CHECK(sutler_stats_get(&stats, sizeof stats) == 0);
    uses_the_heap(&rng);
    return stats.provided_bytes;
}

static void near(uint64_t seed, int version)
{
    expect_auto();
    needs_place_for_one();
    size_t provided = provided_under(seed, version, "268435456\n");
    CHECK_MSG(provided == 0, "%zu KiB made ready although only 16 MiB are left", provided / KIB);
}

static void near_the_limit(uint64_t seed)
{
    near(seed, 2);
}

static void near_the_limit_v1(uint64_t seed)
{
    near(seed, 1);
}

static void far_from_the_limit(uint64_t seed)
{
    char text[4096];
    expect_auto();
    proc_read("/proc/meminfo", text, sizeof text);
    const char *row = strstr(text, "MemAvailable:");
    if (!can_have_one() || row == NULL || strtoull(row + 13, NULL, 10) < 512 * KIB)
        SKIP("one cpu, or short of memory");
    CHECK_MSG(provided_under(seed, 2, "max\n") > 0, "nothing was made ready for a program that grows");
}

/* ---- switched off: an option is read at start ---- */

static void switched_off(uint64_t seed)
{
    struct rng rng = {seed};
    manager_never(&rng, 1);
    uses_the_heap(&rng);
}

static void start_switched_off(uint64_t seed)
{
    (void)seed;
    setenv("SUTLER_MANAGER", "off", 1);
    execl("/proc/self/exe", "whether", "--off", NULL);
    FAIL("cannot start myself: errno %d", errno);
}

int main(int argc, char **argv)
{
    test_begin(240);
    if (argc > 1 && strcmp(argv[1], "--off") == 0) {
        switched_off(1);
        return 0;
    }
    static const struct manager_case cases[] = {
        {"started", started},
        {"switched_off", start_switched_off},
        {"one_large_block", one_large_block},
        {"one_empty_block", one_empty_block},
        {"one_cpu", one_cpu},
        {"child_of_one_cpu", child_of_one_cpu},
        {"cpus_taken_away", cpus_taken_away},
        {"all_squeezed", all_squeezed},
        {"pinned_while_running", pinned_while_running},
        {"one_cpu_at_first", one_cpu_at_first},
        {"one_thread_pinned", one_thread_pinned},
        {"no_threads_allowed", no_threads_allowed},
        {"quota_below_two", quota_below_two},
        {"quota_of_three", quota_of_three},
        {"no_quota", no_quota},
        {"quota_changes", quota_changes},
        {"real_quota_changes", real_quota_changes},
        {"near_the_limit", near_the_limit},
        {"near_the_limit_v1", near_the_limit_v1},
        {"far_from_the_limit", far_from_the_limit},
    };
    return cases_run(argc, argv, cases, sizeof cases / sizeof cases[0]);
}
