/* SPDX-License-Identifier: MIT
 *
 * The lists of rcs_cache: the library below is asked in bulk, and gets in bulk what a list has no room for.  One
 * thread, pinned, so that it is one list.  While a fork is under way other threads leave the lists alone.
 */
#include "engine_counts.h"
#include "fork/heap.h"
#include "foreign.h"

#include <sched.h>

#define BLOCKS 20000

static void pin(void)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    CHECK(sched_setaffinity(0, sizeof one, &one) == 0);
}

/* Refills and returns of a program that allocates and frees as much as many lists hold. */
static void *allocate_and_free(void *trips)
{
    static void *blocks[BLOCKS];
    uint64_t refills = counted("messages"), returns = counted("handed");
    for (size_t i = 0; i < BLOCKS; i++) {
        blocks[i] = malloc(64);
        CHECK(blocks[i] != NULL);
        memset(blocks[i], 1, 64);
    }
    ((uint64_t *)trips)[0] = counted("messages") - refills;
    for (size_t i = 0; i < BLOCKS; i++)
        free(blocks[i]);
    ((uint64_t *)trips)[1] = counted("handed") - returns;
    return NULL;
}

/* Runs in the forking thread, after the engine's own prepare handler. */
static void while_forking(void)
{
    uint64_t trips[2];
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, allocate_and_free, trips) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    CHECK_MSG(trips[0] == 0 && trips[1] == 0, "%lu refills and %lu returns during a fork", (unsigned long)trips[0],
              (unsigned long)trips[1]);
}

static void check_bulk(void)
{
    uint64_t trips[2];
    allocate_and_free(trips);
    CHECK_MSG(trips[0] > 0 && trips[0] <= BLOCKS / 32, "%lu refills for %d blocks", (unsigned long)trips[0], BLOCKS);
    CHECK_MSG(trips[1] >= BLOCKS / 512 && trips[1] <= BLOCKS / 32, "%lu returns", (unsigned long)trips[1]);
}

int main(void)
{
    engine_begin(60);
    pin();
    check_bulk();
    foreign_prepare = while_forking;
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        engine_watchdog(60);
        check_bulk();
        _exit(0);
    }
    child_reap(child);
    check_bulk();
    return 0;
}
