/* SPDX-License-Identifier: MIT
 *
 * The manager's state as its own files see it: what start.c, loop.c and park.c change it by.
 */
#ifndef SUTLER_MANAGER_STATE_H
#define SUTLER_MANAGER_STATE_H

#include "manager/manager.h"

static inline enum manager_state manager_state_in(uint32_t word)
{
    return (enum manager_state)(word & MANAGER_STATE_MASK);
}

/* From one state to another, unless something else was said meanwhile. */
bool manager_change(enum manager_state from, enum manager_state to);

/* manager_begin: from absent to busy, a new generation; false if it was not absent. manager_end: back to absent, and
 * wakes everybody who waits for that. */
bool manager_begin(void);
void manager_end(void);

/* Sets the flag that makes it stop after the piece of work it is in, and wakes it. */
void manager_ask_to_stop(void);

/* The one way to keep it away for a time (a park that has ended, a fork, a refused clone, a lost quota): it is asked to
 * stop, and none is started for so long from now on. */
void manager_stay_away(uint64_t for_ns);

/* ---- loop.c, start.c ---- */

/* The manager's thread: returns when it was asked to stop, or is in the program's way. */
void manager_run(void);

/* In a forked child: what the parent had in use does not make a manager worthwhile here. */
void manager_start_forget(void);

#endif
