/* SPDX-License-Identifier: MIT
 *
 * A thread libc does not know of.
 */
#ifndef SUTLER_MANAGER_CLONE_H
#define SUTLER_MANAGER_CLONE_H

#include "base/compiler.h"

/* Starts `run` on a new kernel thread of this process with its own stack and thread pointer; when `run` returns the
 * thread ends, *tid is set to 0 and its futex woken.  Returns the thread id, or -errno. */
long clone_thread(void (*run)(void), void *stack_top, void *thread_pointer, _Atomic uint32_t *tid);

#endif
