/* SPDX-License-Identifier: MIT
 *
 * What the manager's thread (loop.c) and its life (lifecycle.c) tell each other.
 */
#ifndef SUTLER_MANAGER_LIFECYCLE_H
#define SUTLER_MANAGER_LIFECYCLE_H

#include "manager/manager.h"

/* The thread of the program that started it, and the cpu it did so on. */
struct manager_starter {
    uint32_t tid;
    unsigned cpu;
};
extern struct manager_starter manager_starter;

/* The manager's thread: until it is asked to stop, or in the program's way. */
void manager_run(void);

/* From one state to another, unless something else was said meanwhile. */
bool manager_change(enum manager_state from, enum manager_state to);

/* The one way to keep it away for a time: it is asked to stop, and none is started for so long from now on. */
void manager_stay_away(uint64_t for_ns);

#endif
