/* SPDX-License-Identifier: MIT
 *
 * Memory hooks.  Who registers memory with a network card (UCX, libfabric, Open MPI) has to know which pages go, and
 * replaces the first instructions of libc's munmap and madvise for it.  System calls of our own would pass it by, and
 * the card would use pages that are the system's again.  So once that has been done, what the program had goes by these
 * functions of libc (docs/decisions/0055-what-goes-is-announced-where-others-hook.md):
 *
 * - By the program's threads: the hooks need libc, which the manager has not.
 * - When something is freed, or resized, not when it is taken: somebody may take a block under a lock that the hooks
 *   take, too.  (But before memory is refused; and the hardened library guards a large block when it is taken.)
 */
#ifndef SUTLER_OS_HOOKS_H
#define SUTLER_OS_HOOKS_H

#include "base/compiler.h"

/* Once, when libc is ready: notes how these functions begin, before anybody replaces that.  Where there is no dlsym (a
 * static program) nobody can. */
void os_hooks_init(void);

/* True while they begin otherwise; a breakpoint does not count.  Thread-safe. */
bool os_is_hooked(void);

/* As the system's calls, of libc's functions: 0 or -errno; errno stays.  Only where os_hooks_init found them. */
long os_hooked_munmap(void *address, size_t size);
long os_hooked_madvise(void *address, size_t size, int advice);

#endif
