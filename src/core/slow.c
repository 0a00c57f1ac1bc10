/* SPDX-License-Identifier: MIT
 *
 * Entering and leaving the allocator's slow paths.  A signal handler that interrupts one must not wait for its locks.
 */
#include "core/child.h"
#include "core/core.h"
#include "heap/decay.h"
#include "manager/hint.h"

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

/* The thread of a vfork's child does neither: it would be nobody's. */
void slow_leave_and_hint(void)
{
    const bool hints = likely(!rcs_is_suspended());
    if (unlikely(atomic_load_explicit(&manager_is_missing, memory_order_relaxed)) && hints)
        decay_in_passing();
    slow_leave();
    if (hints)
        manager_hint();
}

COLD void slow_now_and_then(void)
{
    const unsigned every = 32;
    THREAD_LOCAL uint8_t calls;
    if (++calls % every != 0 || rcs_is_suspended() || !slow_enter())
        return;
    decay_in_passing();
    slow_leave();
}

void child_notice_outside(void)
{
    if (slow_enter())
        slow_leave();
}
