/* SPDX-License-Identifier: MIT
 *
 * The manager's state, and the transitions everybody shares.
 *
 *                 a slow path finds it worthwhile
 *        absent ---------------------------------> busy <-----> asleep         forbidden: from any of them, for ever
 *           ^                                       |
 *           +---------------------------------------+
 *                 it was asked to stop, or no thread could be made
 *
 * The state changes by compare-and-swap only, and with it the generation: what was decided for one manager does not
 * change the state of the next.
 */
#include "manager/state.h"

#include "heap/demand.h"
#include "manager/wake.h"
#include "os/os.h"

struct manager_life manager_life;

bool manager_change(enum manager_state from, enum manager_state to)
{
    uint32_t seen = atomic_load(&manager_life.word);
    uint32_t next = (seen & ~MANAGER_STATE_MASK) | to;
    return manager_state_in(seen) == from && atomic_compare_exchange_strong(&manager_life.word, &seen, next);
}

bool manager_begin(void)
{
    uint32_t seen = atomic_load(&manager_life.word);
    uint32_t next = (((seen >> MANAGER_STATE_BITS) + 1) << MANAGER_STATE_BITS) | manager_busy;
    return manager_state_in(seen) == manager_absent && atomic_compare_exchange_strong(&manager_life.word, &seen, next);
}

void manager_end(void)
{
    manager_change(manager_busy, manager_absent);
    os_futex_wake_all(&manager_life.word);
}

void manager_forbid(void)
{
    uint32_t seen = atomic_load(&manager_life.word);
    while (!atomic_compare_exchange_strong(&manager_life.word, &seen, (seen & ~MANAGER_STATE_MASK) | manager_forbidden))
        continue;
    atomic_store(&manager_is_missing, true);
    /* Where there was none nobody waits, and a filter that is in force by now may kill for the call. */
    if (manager_state_in(seen) == manager_busy || manager_state_in(seen) == manager_asleep)
        os_futex_wake_all(&manager_life.word);
}

void manager_ask_to_stop(void)
{
    atomic_store(&manager_stop_requested, true);
    wake_manager();
}

void manager_stay_away(uint64_t for_ns)
{
    if (manager_state() == manager_forbidden) /* it does; and the time may not be asked any more */
        return;
    uint64_t until_ns = os_now_ns() + for_ns, seen = atomic_load(&manager_life.not_before_ns);
    while (seen < until_ns && !atomic_compare_exchange_strong(&manager_life.not_before_ns, &seen, until_ns))
        continue;
    if (manager_state() == manager_busy || manager_state() == manager_asleep)
        manager_ask_to_stop();
}
