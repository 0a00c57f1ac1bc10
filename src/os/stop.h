/* SPDX-License-Identifier: MIT
 *
 * Stopping all threads of the process but the caller, for a moment in which nothing of its memory changes.
 *
 * Each thread is sent a signal whose handler waits.  What the thread had in its registers is meanwhile on its stack,
 * where the system has put it for the handler.  The signal is number 33, which libc sends to all threads when
 * credentials change and lets nobody block: libc's own handler is called for any that is not ours.
 *
 * The caller takes no signal meanwhile: a handler might wait for a thread that is stopped.
 *
 * While threads are stopped they may hold any lock of the program, of libc and of this library: the caller takes none.
 */
#ifndef SUTLER_OS_STOP_H
#define SUTLER_OS_STOP_H

#include "base/compiler.h"

/* True if all others are stopped, false if that was not to be had within `most_ns`: then none is.  Thread `spared`,
 * which changes nothing that matters, goes on; 0: there is none.  One caller at a time; within need_begins(need_plain)
 * (filter.h). */
bool os_threads_stop(uint32_t spared, uint64_t most_ns);

/* Lets them go on. */
void os_threads_resume(void);

#endif
