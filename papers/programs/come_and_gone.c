/* SPDX-License-Identifier: MIT
 *
 * Why: what threads that have ended leave behind in an allocator with something for each thread.  The main thread times
 * a loop of `blocks` blocks of eight sizes, allocated and freed; `threads` threads run it shortly and end; it is timed
 * again.  `after_over_before` is 1 where they left nothing.  An operation is one block of the main thread's.
 */
#include "args.h"
#include "clock.h"
#include "result.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static uint64_t blocks = 400;

static uint64_t loop(uint64_t rounds)
{
    uint64_t errors = 0;
    unsigned char **live = calloc(blocks, sizeof *live);
    if (live == NULL)
        return 1;
    for (uint64_t round = 0; round < rounds; round++) {
        for (uint64_t i = 0; i < blocks; i++) {
            live[i] = malloc(16 + i % 8 * 32);
            if (live[i] != NULL)
                live[i][0] = (unsigned char)i;
        }
        for (uint64_t i = 0; i < blocks; i++) {
            errors += live[i] == NULL || live[i][0] != (unsigned char)i;
            free(live[i]);
        }
    }
    free(live);
    return errors;
}

static void *come_and_go(void *unused)
{
    (void)unused;
    return (void *)(uintptr_t)loop(10);
}

static uint64_t timed_ns(uint64_t rounds, uint64_t *errors)
{
    uint64_t begin_ns = clock_ns();
    *errors += loop(rounds);
    return clock_ns() - begin_ns;
}

int main(int argc, char **argv)
{
    uint64_t threads = 64, rounds = 1000, errors = 0;
    const struct arg args[] = {
        {"threads", ARG_COUNT, &threads, "threads that come and go"},
        {"rounds", ARG_COUNT, &rounds, "rounds of the loop, before and after"},
        {"blocks", ARG_COUNT, &blocks, "blocks of a round"},
    };
    ARGS_READ("come_and_gone", argc, argv, args);
    if (rounds < 1 || blocks < 1)
        args_reject("rounds", "and blocks: at least 1");
    errors += loop(rounds / 4 + 1); /* buckets and bins find their size */
    uint64_t before_ns = timed_ns(rounds, &errors);
    for (uint64_t i = 0; i < threads; i += 8) {
        pthread_t team[8];
        for (int j = 0; j < 8; j++)
            errors += pthread_create(&team[j], NULL, come_and_go, NULL) != 0;
        for (int j = 0; j < 8; j++) {
            void *wrong;
            errors += pthread_join(team[j], &wrong) != 0 || wrong != NULL;
        }
    }
    errors += loop(rounds / 4 + 1);
    uint64_t after_ns = timed_ns(rounds, &errors);
    result_begin("come_and_gone", threads, 2 * rounds * blocks, before_ns + after_ns);
    result_real("after_over_before", (double)after_ns / (double)before_ns);
    return result_end(errors);
}
