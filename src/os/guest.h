/* SPDX-License-Identifier: MIT
 *
 * What a thread of ours that the program did not make gives up, so as to be a guest in the process.
 */
#ifndef SUTLER_OS_GUEST_H
#define SUTLER_OS_GUEST_H

#include "base/compiler.h"

/* At its birth, with all signals blocked.  The calling thread loses its capabilities: should a change of credentials
 * miss it, it keeps no privilege.  And it lets through the signal by which libraries (libcap's libpsx) reach every
 * thread that the system lists, for they wait until all of them have answered. */
void os_guest_renounce(void);

/* Leaves real-time and deadline scheduling, which the thread inherits from the one that made it, and takes over the
 * nice value of the process's first thread.  To be repeated: both may change. */
void os_guest_take_no_precedence(void);

#endif
