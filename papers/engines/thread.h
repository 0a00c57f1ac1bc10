/* SPDX-License-Identifier: MIT
 *
 * Why: how threads begin and end.  Engines with something per thread, and the manager, must hear of the end.  The
 * beginning matters to fork: a library below may take a lock when a thread calls it for the first time, without
 * handlers that keep it out of a snapshot.  (mimalloc 3.4 puts the thread's heap on a list.  A child made meanwhile
 * waits for ever when a thread of its own begins.)  Most threads under an engine would make that first call in the
 * middle of a fork, when they go around the engine.  So each makes one before it goes through the engine for the first
 * time, and a fork waits for it.
 */
#ifndef ENGINES_THREAD_H
#define ENGINES_THREAD_H

#include "base.h"

void engine_thread_own(void *mine); /* engine.thread_exit(mine) is called at the end of this thread */
bool threads_start(void);           /* false: the C library has no memory */
void thread_enters(void);           /* of an ENGINE_NEWCOMER, who is none after that; keeps errno */
void threads_fork_prepare(void);    /* after engine_forks was counted up */
void threads_fork_child(void);

#endif
