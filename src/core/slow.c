/* SPDX-License-Identifier: MIT
 *
 * Entering and leaving the allocator's slow paths.  A signal handler that interrupts one must not wait for its locks.
 */
#include "core/child.h"
#include "core/core.h"
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

void slow_leave_and_hint(void)
{
    slow_leave();
    if (likely(!rcs_is_suspended())) /* a vfork child's thread would be nobody's */
        manager_hint();
}

void child_notice_outside(void)
{
    if (slow_enter())
        slow_leave();
}
