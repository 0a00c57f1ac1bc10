/* SPDX-License-Identifier: MIT
 *
 * Why: when a request does not go through the engine but to the backend, past it.  That is always correct (engine.h),
 * so it is the answer wherever waiting for the manager could be for ever:
 *
 *   engine_running  false until the library's constructor is through
 *   engine_bypass   > 0: of this thread; the manager, a forking thread, a library call that may allocate; and a thread that
 *                   has not called yet (thread.h)
 *   engine_forks    > 0: forks under way, from their prepare handler to their end.  The manager is paused, and a foreign
 *                   prepare handler may be waiting for a lock whose holder is in our malloc: whoever would wait for the
 *                   manager goes around it, and no lock is held from one handler to the next
 *
 * What a fork closes is closed in two steps: it counts engine_forks up, then takes and drops each lock.  Whoever takes
 * the lock after that sees the count and leaves things as they are; so the snapshot holds them whole.
 */
#ifndef ENGINES_AROUND_H
#define ENGINES_AROUND_H

#include "base.h"

extern bool engine_running;
extern __thread int engine_bypass; /* starts as ENGINE_NEWCOMER */
#define ENGINE_NEWCOMER (1 << 16)
extern uint32_t engine_forks;

/* Not merely because this thread has not called yet. */
static inline bool engine_is_bypassed(void)
{
    return (engine_bypass & ~ENGINE_NEWCOMER) != 0;
}

static inline bool fork_is_under_way(void)
{
    return UNLIKELY(LOAD(&engine_forks) != 0);
}

#endif
