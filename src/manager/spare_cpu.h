/* SPDX-License-Identifier: MIT
 *
 * Whether there is a processor to spare.
 */
#ifndef SUTLER_MANAGER_SPARE_CPU_H
#define SUTLER_MANAGER_SPARE_CPU_H

#include "base/compiler.h"

/* Called by a thread of the program: true if it may run on two cpus. */
bool spare_cpu_is_possible(void);
/* Called by the manager, which `starter` started: true if both threads still may, and no quota forbids it. */
bool spare_cpu_is_granted(uint32_t starter);
/* Called by the manager: true if no processor is idle at this moment. */
bool spare_cpu_is_busy(void);

#endif
