/* SPDX-License-Identifier: MIT
 *
 * What the manager sleeps on: a count of rings.
 */
#ifndef SUTLER_MANAGER_BELL_H
#define SUTLER_MANAGER_BELL_H

#include "base/compiler.h"

/* By the program: wakes the manager, or keeps it from falling asleep. */
void bell_ring(void);

/* By the manager: the count; look at what there is to do after reading it and before sleeping on it. */
uint32_t bell_count(void);
/* Returns when the bell has been rung since `heard`, or at `when_ns`. */
void bell_sleep(uint32_t heard, uint64_t when_ns);
/* Returns when the bell has been rung since `heard`.  Ends the thread, and so the process, if it is the last one. */
void bell_sleep_long(uint32_t heard);

/* By any thread, before a manager is started: if it is the process's first, it is known from now on. */
void bell_note_leader(void);
/* In a forked child: another thread is the first. */
void bell_forget_leader(void);

#endif
