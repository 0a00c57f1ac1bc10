/* SPDX-License-Identifier: MIT
 *
 * How many superblocks of a class a heap takes blocks back to by itself: all it filled (the default), or one
 * (SUTLER_POLICY=one, LFMalloc's).  A single thread fills many superblocks and frees everything: with many, no free
 * is remote; with one, nearly all are.  In both the blocks must come back: a second round needs no more memory.
 */
#define SUTLER_WEAK
#include "support/check.h"
#include "sutler/sutler.h"

#include <sched.h>

enum { BLOCKS = 40000, BYTES = 64 };

static unsigned char *blocks[BLOCKS];

static struct sutler_stats stats_now(void)
{
    struct sutler_stats stats;
    CHECK(sutler_stats_get(&stats, sizeof stats) == 0);
    return stats;
}

static void fill_and_free(void)
{
    for (size_t i = 0; i < BLOCKS; i++) {
        blocks[i] = opaque(malloc(BYTES));
        CHECK(blocks[i] != NULL);
        memset(blocks[i], (int)(i % 251), BYTES);
    }
    for (size_t i = 0; i < BLOCKS; i++) {
        CHECK(blocks[i][0] == i % 251 && blocks[i][BYTES - 1] == i % 251);
        free(blocks[i]);
    }
}

int main(void)
{
    test_watchdog(60);
    if (sutler_stats_get == NULL) {
        test_say("SKIPPED: the library is not there\n");
        return 77;
    }
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    CHECK(sched_setaffinity(0, sizeof one, &one) == 0); /* a thread that is moved frees remotely, too */
    const char *policy = getenv("SUTLER_POLICY");
    bool is_one = policy != NULL && strcmp(policy, "one") == 0;
    fill_and_free();
    struct sutler_stats first = stats_now();
    for (int round = 0; round < 10; round++)
        fill_and_free();
    struct sutler_stats last = stats_now();
    uint64_t remote = last.remote_frees - first.remote_frees;
    char sync[16] = "";
    CHECK(sutler_option_get("sync", sync, sizeof sync) == 0);
    if (is_one && strcmp(sync, "rcs") != 0)
        test_say("in the lock modes a free to the global heap is one under its lock, and not counted\n");
    else if (is_one)
        CHECK_MSG(remote > 10 * BLOCKS / 2, "only %llu of %d frees were offline", (unsigned long long)remote,
                  10 * BLOCKS);
    else
        CHECK_MSG(remote < BLOCKS / 10, "%llu of %d frees were remote", (unsigned long long)remote, 10 * BLOCKS);
    CHECK_MSG(last.mapped_bytes <= first.mapped_bytes + (4 << 20),
              "%zu bytes mapped after the first round, %zu at the end", first.mapped_bytes, last.mapped_bytes);
    return 0;
}
