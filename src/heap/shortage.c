/* SPDX-License-Identifier: MIT */
#include "heap/shortage.h"

#include "base/bits.h"
#include "heap/allowance.h"
#include "heap/purge_round.h"

/* So much is purged ahead, and so much may be taken when a whole round has found less than that: each time twice as
 * much, until there is room again.  What fills the group may be what the system drops before it kills. */
#define AHEAD_BYTES    (4ll << 20)
#define GRANTED_BYTES  (16ll << 20)
#define DOUBLINGS_MAX  6u

static struct purge_round current = {.step = round_over}; /* in a pass */
static _Atomic bool was_made;   /* a purge, since somebody asked */
static _Atomic unsigned grants; /* in a row */

static bool is_too_little(void)
{
    return atomic_load_explicit(&allowance_left, memory_order_relaxed) < AHEAD_BYTES;
}

bool shortage_was_purged(void)
{
    return atomic_exchange(&was_made, false);
}

bool shortage_is_granted(void)
{
    return atomic_load(&grants) != 0;
}

void shortage_is_over(void)
{
    atomic_store(&grants, 0);
}

/* From where the last call left off, all of the heap once at most. */
void shortage_purge(void)
{
    atomic_store(&was_made, true);
    pass_begin();
    for (unsigned rounds = 0; is_too_little();) {
        if (round_is_over(&current)) {
            if (rounds++ > 0) {
                allowance_set(GRANTED_BYTES << min_size(atomic_fetch_add(&grants, 1), DOUBLINGS_MAX));
                break;
            }
            round_begin(&current, purge_force, true);
        }
        round_go_on(&current);
        pass_yield();
    }
    pass_end();
}

void shortage_forget(void)
{
    current.step = round_over;
}
