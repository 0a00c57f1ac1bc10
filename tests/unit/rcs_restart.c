/* SPDX-License-Identifier: MIT
 *
 * Whether this kernel restarts a section that was preempted on its own cpu, and whether the library knows.  Two threads
 * share one cpu.  One waits in a section; when the other has run, the first was preempted there, wherever it is now,
 * and must find itself restarted.  A kernel that fails this (Linux 6.19 on aarch64) passes the test if the library
 * found it out at start and uses no sections.
 */
#include <pthread.h>
#include <sched.h>

#include "rcs/hot.h"
#include "rcs/restart.h"
#include "unit.h"

#define ROUNDS_MAX 200
#define ENOUGH     20
#define TURNS      100000000u

static _Atomic uint32_t inside, leave, turn, over;

/* Once a round: says 1 to who is not in the section yet, 2 to who is. */
static void *intrude(void *nothing)
{
    for (uint32_t seen = 0;; seen++) {
        while (turn == seen)
            usleep(100);
        if (turn == UINT32_MAX)
            return nothing;
        usleep(300);
        leave = 1 + inside;
        over = seen + 1;
    }
}

int main(void)
{
    unit_watchdog(120);
    EXPECT(core_ready());
    if (rcs_verdict != rcs_usable && rcs_verdict != rcs_selftest_failed)
        SKIP("no restartable sections here: verdict %d", (int)rcs_verdict);
    unit_say("mode %s (verdict %d); the cid is %s\n", sync_mode == sync_rcs ? "rcs" : "cpu", (int)rcs_verdict,
             hot.cid == hot.rseq + RSEQ_MM_CID ? "mm_cid" : "cpu_id");
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET((size_t)sched_getcpu(), &one);
    EXPECT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    pthread_t intruder;
    EXPECT_EQ(pthread_create(&intruder, NULL, intrude, NULL), 0);

    unsigned restarted = 0, went_on = 0;
    for (uint32_t round = 1; round <= ROUNDS_MAX && restarted + went_on < ENOUGH; round++) {
        inside = leave = 0;
        turn = round;
        enum rcs_result result = rcs_linger(&inside, &leave, TURNS);
        while (over != round)
            usleep(100);
        restarted += result == rcs_aborted;
        went_on += result == rcs_changed && leave == 2;
    }
    turn = UINT32_MAX;
    EXPECT_EQ(pthread_join(intruder, NULL), 0);
    unit_say("%u preempted sections restarted, %u went on; verdict %d\n", restarted, went_on, (int)rcs_verdict);
    EXPECT(restarted + went_on > 0);
    EXPECT(rcs_verdict != rcs_usable || went_on == 0);
    EXPECT(rcs_verdict != rcs_selftest_failed || restarted == 0);
    return 0;
}
