/* SPDX-License-Identifier: MIT
 *
 * Entering and leaving the allocator's slow paths.  A signal handler that interrupts one must not wait for its locks.
 */
#include "core/child.h"
#include "core/core.h"
#include "heap/allowance.h"
#include "heap/decay.h"
#include "manager/headroom.h"
#include "manager/hint.h"
#include "os/hooks.h"

THREAD_SHARED bool in_slow_path;

bool slow_enter(void)
{
    if (unlikely(in_slow_path))
        return false;
    in_slow_path = true;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (unlikely(!child_is_noticed()))
        child_recover();
    return true;
}

void slow_leave(void)
{
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    in_slow_path = false;
}

/* What a call counts for, in thirty-seconds of a slow path; and between two looks at the clock, while a round of decay
 * is under way and else. */
enum { quick_call = 1, slow_path = 32, look_every = 32, look_every_idle = 256 };

/* Counts a call of the thread; true if it should look at the clock. */
static bool counts(unsigned call)
{
    THREAD_LOCAL uint8_t count;
    const unsigned before = count, now = before + call;
    const bool often = atomic_load_explicit(&decay_is_under_way, memory_order_relaxed);
    const unsigned every = often ? look_every : look_every_idle;
    count = (uint8_t)now;
    return now / every != before / every;
}

static bool may_purge(enum slow_did did)
{
    return did == slow_gave || likely(!os_is_hooked());
}

/* The thread of a vfork's child does neither: it would be nobody's. */
void slow_leave_and_hint(enum slow_did did)
{
    const bool hints = likely(!rcs_is_suspended());
    if (hints && unlikely(allowance_is_low()) && may_purge(did))
        headroom_in_passing();
    if (unlikely(heap_is_unmanaged()) && hints && counts(slow_path) && may_purge(did))
        decay_in_passing();
    slow_leave();
    if (hints)
        manager_hint();
}

COLD void slow_now_and_then(void)
{
    if (!counts(quick_call) || rcs_is_suspended() || os_is_hooked() || !slow_enter())
        return;
    decay_in_passing();
    slow_leave();
}

void child_notice_outside(void)
{
    if (slow_enter())
        slow_leave();
}
