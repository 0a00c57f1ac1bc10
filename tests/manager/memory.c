/* SPDX-License-Identifier: MIT
 *
 * The manager under the settings of memory a program or an administrator may have chosen: everything locked (pages
 * cannot be given back, and address space costs memory as soon as it is opened), huge pages always, on request, never,
 * and forbidden for this process.  Contents are right in all of them, and what is asked of the manager is done where it
 * can be.
 */
#include "watch.h"
#include <sys/mman.h>
#include <sys/prctl.h>

static size_t rollup_bytes(const char *name)
{
    char text[4096];
    proc_read("/proc/self/smaps_rollup", text, sizeof text);
    const char *row = strstr(text, name);
    return row == NULL ? 0 : (size_t)strtoull(row + strlen(name), NULL, 10) * KIB;
}

static struct sutler_stats stats_now(void)
{
    struct sutler_stats stats;
    CHECK(sutler_stats_get(&stats, sizeof stats) == 0);
    return stats;
}

static size_t most_resident;

static void churn(struct rng *rng)
{
    for (int i = 0; i < 4; i++) {
        hoard_grow(rng, 30 * MIB);
        size_t resident = proc_resident_bytes();
        most_resident = resident > most_resident ? resident : most_resident;
        hoard_drop(2 + (size_t)i);
        hoard_check();
    }
}

/* ---- locked ---- */

static void lock(int flags)
{
    if (mlockall(flags) != 0)
        SKIP("memory may not be locked here: errno %d", errno);
}

static void locked(uint64_t seed, int flags, bool start_before)
{
    struct rng rng = {seed};
    if (start_before)
        manager_start(&rng);
    lock(flags);
    if (!start_before)
        manager_start(&rng);
    churn(&rng);
    sleep_us(1200000); /* the clock tries to purge */
    hoard_grow(&rng, 20 * MIB);
    pid_t child = fork(); /* locks are not inherited: here pages can be given back */
    CHECK(child >= 0);
    if (child == 0) {
        test_watchdog(30);
        hoard_drop(6);
        sutler_purge();
        hoard_check();
        hoard_grow(&rng, 10 * MIB);
        hoard_check();
        _exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    hoard_check();
    /* Opening address space ahead is not to lock memory without bound. */
    CHECK_MSG(most_resident < 400 * MIB, "%zu MiB resident", most_resident / MIB);
    /* Once it is no longer locked it does go back. */
    hoard_drop(0);
    sutler_purge();
    CHECK(munlockall() == 0);
    sutler_purge();
    test_say("(%zu MiB at most, %zu MiB at the end) ", most_resident / MIB, proc_resident_bytes() / MIB);
    CHECK_MSG(proc_resident_bytes() < 40 * MIB, "%zu MiB resident", proc_resident_bytes() / MIB);
}

static void locked_after_start(uint64_t seed)
{
    locked(seed, MCL_CURRENT | MCL_FUTURE, true);
}

static void locked_before_start(uint64_t seed)
{
    locked(seed, MCL_CURRENT | MCL_FUTURE, false);
}

static void locked_on_fault(uint64_t seed)
{
    locked(seed, MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT, true);
}

/* ---- huge pages ---- */

enum system { system_always, system_madvise, system_never, system_unknown };

static enum system system_setting(void)
{
    char text[256];
    proc_read("/sys/kernel/mm/transparent_hugepage/enabled", text, sizeof text);
    return strstr(text, "[always]") != NULL    ? system_always
           : strstr(text, "[madvise]") != NULL ? system_madvise
           : strstr(text, "[never]") != NULL   ? system_never
                                               : system_unknown;
}

/* Grows, gives back, regrows.  Returns the most bytes seen in huge pages. */
static size_t huge_while_working(uint64_t seed)
{
    struct rng rng = {seed};
    manager_start(&rng);
    size_t most = 0;
    const int rounds = 3, rounds_most = 40; /* beside busy processes the manager mostly rests */
    for (int i = 0; i < rounds || (i < rounds_most && stats_now().provided_bytes == 0); i++) {
        hoard_grow(&rng, 100 * MIB);
        size_t huge = rollup_bytes("AnonHugePages:");
        most = huge > most ? huge : most;
        hoard_drop(30);
        sutler_purge();
        hoard_check();
        CHECK_MSG(proc_resident_bytes() < 100 * MIB, "%zu MiB resident of a purged heap of %zu MiB live",
                  proc_resident_bytes() / MIB, hoard_bytes / MIB);
    }
    CHECK_MSG(stats_now().provided_bytes > 0, "nothing was made ready for a program that grows");
    return most;
}

static void forbidden_for_us(uint64_t seed)
{
    if (prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) != 0)
        SKIP("the system knows no PR_SET_THP_DISABLE");
    CHECK(huge_while_working(seed) == 0);
}

static void forbidden_while_running(uint64_t seed)
{
    struct rng rng = {seed};
    manager_start(&rng);
    if (prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) != 0)
        SKIP("the system knows no PR_SET_THP_DISABLE");
    churn(&rng);
    CHECK(prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0) == 0);
    churn(&rng);
    hoard_drop(0);
}

static void as_it_is(uint64_t seed)
{
    char value[16];
    CHECK(sutler_option_get("huge_pages", value, sizeof value) == 0);
    size_t most = huge_while_working(seed);
    enum system setting = system_setting();
    test_say("(%s: %zu MiB in huge pages) ", value, most / MIB);
    if (setting == system_never || (setting == system_madvise && strcmp(value, "off") == 0))
        CHECK(most == 0);
    if (strcmp(value, "on") == 0 && (setting == system_madvise || setting == system_always))
        CHECK(most > 0);
}

static const char *program_path;

static void start_with(const char *value)
{
    setenv("SUTLER_HUGE_PAGES", value, 1);
    execl(program_path, program_path, "--only", "as_it_is", NULL);
    FAIL("cannot start myself: errno %d", errno);
}

static void huge_pages_on(uint64_t seed)
{
    (void)seed;
    start_with("on");
}

static void huge_pages_off(uint64_t seed)
{
    (void)seed;
    start_with("off");
}

int main(int argc, char **argv)
{
    test_begin(120);
    program_path = argv[0];
    static const struct manager_case cases[] = {
        {"locked_after_start", locked_after_start},
        {"locked_before_start", locked_before_start},
        {"locked_on_fault", locked_on_fault},
        {"forbidden_for_us", forbidden_for_us},
        {"forbidden_while_running", forbidden_while_running},
        {"as_it_is", as_it_is},
        {"huge_pages_on", huge_pages_on},
        {"huge_pages_off", huge_pages_off},
    };
    return cases_run(argc, argv, cases, sizeof cases / sizeof cases[0]);
}
