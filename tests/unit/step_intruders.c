/* SPDX-License-Identifier: MIT
 *
 * The intruders: what another thread, or a signal handler, does while a scene is stopped.
 */
#include "inspect.h"
#include "step.h"
#include "step_blocks.h"
#include "unit.h"

static void intrude_take(void)
{
    for (unsigned n = 0; n < 3; n++)
        take(&pool_b, SMALL);
    give(&pool_b);
}

static void intrude_give(void)
{
    for (unsigned n = 0; n < 3; n++)
        give(&pool_b);
}

static void intrude_swap(void)
{
    give(&pool_b);
    give(&pool_b);
    take(&pool_b, SMALL);
    take(&pool_b, SMALL);
    take(&pool_b, MEDIUM);
    give(&pool_b);
}

static void intrude_drain(void)
{
    for (unsigned n = 0; n < 70; n++)
        take(&pool_b, SMALL);
    for (unsigned n = 0; n < 35; n++)
        give(&pool_b);
}

static void intrude_count(void)
{
    if (sync_mode == sync_rcs)
        for (unsigned n = 0; n < 3; n++)
            count_once();
    give(&pool_b);
    take(&pool_b, SMALL);
}

/* As a thread on another cid, which has come and gone. */
static void intrude_from_elsewhere(void)
{
    if (sync_mode == sync_rcs)
        test_heap_bind(elsewhere);
    intrude_swap();
    intrude_give();
    take(&pool_b, SMALL);
    if (sync_mode == sync_rcs)
        test_heap_bind(home);
}

/* A finds itself on another heap when it goes on. */
static void intrude_and_move(void)
{
    intrude_give();
    if (sync_mode == sync_rcs)
        test_heap_bind(elsewhere);
    take(&pool_b, SMALL);
}

const struct step_intruder step_intruder[] = {
    {"mallocs", intrude_take, true},
    {"frees", intrude_give, true},
    {"both", intrude_swap, true},
    {"many mallocs", intrude_drain, true},
    {"counts", intrude_count, true},
    {"purges", purge_all, false},
    {"acts from another cid", intrude_from_elsewhere, false},
    {"moves the thread", intrude_and_move, false},
};
const unsigned step_intruder_count = ARRAY_LEN(step_intruder);
