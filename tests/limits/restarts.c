/* SPDX-License-Identifier: MIT
 *
 * Restarted sections are counted (`aborts` of sutler_stats): the processor's trap flag raises a signal after every
 * instruction, so every section is restarted, and each malloc and free counts one at least.  In the other modes there
 * are no sections, and nothing is counted.
 */
#define SUTLER_WEAK
#include "support/check.h"
#include "sutler/sutler.h"

#include <signal.h>
#include <sys/auxv.h>

#define AT_RSEQ_FEATURE_SIZE 27

static uint64_t restarts(void)
{
    struct sutler_stats stats;
    CHECK(sutler_stats_get(&stats, sizeof stats) == 0);
    return stats.aborts;
}

#if defined(__x86_64__)
static volatile sig_atomic_t steps;

static void on_step(int number)
{
    (void)number;
    steps++;
}

static void trap_flag(bool on)
{
    unsigned long flags = __builtin_ia32_readeflags_u64();
    __builtin_ia32_writeeflags_u64(on ? flags | 0x100 : flags & ~0x100ul);
}

int main(void)
{
    enum { PAIRS = 20 };
    test_watchdog(170); /* a signal for each instruction, and a debug build has many */
    if (sutler_stats_get == NULL) {
        test_say("SKIPPED: the library is not there\n");
        return 77;
    }
    char mode[16] = "";
    CHECK(sutler_option_get("sync", mode, sizeof mode) == 0);
    bool sections = strcmp(mode, "rcs") == 0;
    if (sections && getauxval(AT_RSEQ_FEATURE_SIZE) < 28) {
        test_say("SKIPPED: no restartable sections here\n");
        return 77;
    }
    void *blocks[PAIRS];
    for (int i = 0; i < PAIRS; i++)
        blocks[i] = opaque(malloc(100));
    for (int i = 0; i < PAIRS; i++)
        free(blocks[i]);
    CHECK(signal(SIGTRAP, on_step) != SIG_ERR);
    uint64_t before = restarts();
    trap_flag(true);
    for (int i = 0; i < PAIRS; i++)
        blocks[i] = opaque(malloc(100));
    for (int i = 0; i < PAIRS; i++)
        free(opaque(blocks[i]));
    trap_flag(false);
    uint64_t counted = restarts() - before;
    CHECK_MSG(steps > PAIRS * 20, "only %d instructions were stepped", (int)steps);
    if (sections)
        CHECK_MSG(counted >= 2 * PAIRS, "%d mallocs and frees were restarted, %llu counted", 2 * PAIRS,
                  (unsigned long long)counted);
    else
        CHECK_MSG(counted == 0, "%llu restarts counted where there are no sections", (unsigned long long)counted);
    return 0;
}
#else
int main(void)
{
    (void)restarts;
    test_say("SKIPPED: written for the x86 trap flag\n");
    return 77;
}
#endif
