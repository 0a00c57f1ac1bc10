/* SPDX-License-Identifier: MIT
 *
 * A large block that two threads free at the same moment is freed by one of them, and the other is told so.
 */
#include "heap/large.h"

#include <pthread.h>

#include "heap/span.h"
#include "unit.h"

static char *block;
static _Atomic unsigned freed;
static bool (*give)(void *block);
static pthread_barrier_t both_ready, both_done;
static _Atomic unsigned at_the_line;

static void free_it(void)
{
    pthread_barrier_wait(&both_ready);
    unsigned arrived = ++at_the_line;
    while (at_the_line < arrived + (arrived & 1)) /* a barrier lets them go one after the other */
        continue;
    freed += give(block);
    pthread_barrier_wait(&both_done);
}

static unsigned rounds;

static void *other(void *unused)
{
    for (unsigned i = 0; i < rounds; i++)
        free_it();
    return unused;
}

static void freed_once(size_t bytes, bool (*how)(void *))
{
    pthread_t thread;
    give = how;
    EXPECT_EQ(pthread_create(&thread, NULL, other, NULL), 0);
    for (unsigned i = 0; i < rounds; i++) {
        size_t in_use = span_counts().in_use_bytes, large = large_counts().bytes;
        bool zero;
        freed = 0;
        EXPECT((block = large_take(bytes, 16, &zero)) != NULL);
        free_it();
        EXPECT_EQ(freed, 1);
        EXPECT_EQ(span_counts().in_use_bytes, in_use);
        EXPECT_EQ(large_counts().bytes, large);
    }
    EXPECT_EQ(pthread_join(thread, NULL), 0);
}

int main(int argc, char **argv)
{
    unit_print_mode();
    unit_watchdog(300);
    rounds = (unsigned)unit_option(argc, argv, "--rounds", 3000);
    EXPECT_EQ(pthread_barrier_init(&both_ready, NULL, 2), 0);
    EXPECT_EQ(pthread_barrier_init(&both_done, NULL, 2), 0);
    free(malloc(1));
    freed_once(300000, large_span_give);
    freed_once(MAPPING_BYTES_MIN, mapping_give);
    return 0;
}
