/* SPDX-License-Identifier: MIT
 *
 * What the manager sleeps on: a count of wakes.
 */
#ifndef SUTLER_MANAGER_WAKE_H
#define SUTLER_MANAGER_WAKE_H

#include "base/compiler.h"

/* By the program: wakes the manager, or keeps it from falling asleep. */
void wake_manager(void);

/* By the manager: the count; look at what there is to do after reading it and before sleeping on it. */
uint32_t wake_count(void);
/* Returns when it was woken since `heard`, at `when_ns`, or when the process's first thread ends. */
void wake_wait_until(uint32_t heard, uint64_t when_ns);
/* True if that thread has ended, and this is known. */
bool wake_leader_has_ended(void);
/* Returns when it was woken since `heard`.  If it is the last thread of the process it ends instead, and the process
 * with it. */
void wake_wait(uint32_t heard);

/* By any thread, before a manager is started: if it is the process's first thread, that is noted. */
void wake_note_leader(void);
/* In a forked child: another thread is the first. */
void wake_forget_leader(void);

#endif
