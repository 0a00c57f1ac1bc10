/* SPDX-License-Identifier: MIT
 *
 * Memory is short, and the allowance (allowance.h) is used up: the thread that took the last of it purges as much as it
 * takes, before it goes on.  A program that fills one class of blocks after another would otherwise outrun the manager.
 * It is a purge of everything that is free, in pieces; whoever comes next goes on where the last one left off.
 */
#ifndef SUTLER_HEAP_SHORTAGE_H
#define SUTLER_HEAP_SHORTAGE_H

#include "base/compiler.h"

/* Purges until the allowance is some megabytes, or nothing is found any more: then it goes on without.  With no lock
 * held. */
void shortage_purge(void);

/* Nothing was found, and more was granted: how much is missing says no more than that.  Until there is room again. */
bool shortage_is_granted(void);
void shortage_is_over(void);

/* Whether anybody did since the last call. */
bool shortage_was_purged(void);

/* In a child: the purge was left off with the thread that was at it. */
void shortage_forget(void);

#endif
