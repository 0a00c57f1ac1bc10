/* SPDX-License-Identifier: MIT
 *
 * Why: the ends of threads, which engines with something per thread, and the manager, must hear of.
 */
#ifndef ENGINES_THREAD_H
#define ENGINES_THREAD_H

#include "base.h"

void engine_thread_own(void *mine); /* engine.thread_exit(mine) is called at the end of this thread */
bool threads_start(void);           /* false: the C library has no memory */
void threads_fork_child(void);

#endif
