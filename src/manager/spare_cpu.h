/* SPDX-License-Identifier: MIT
 *
 * Whether there is a processor to spare.
 */
#ifndef SUTLER_MANAGER_SPARE_CPU_H
#define SUTLER_MANAGER_SPARE_CPU_H

#include "base/compiler.h"

/* By a thread of the program: may it run on two cpus? */
bool spare_cpu_is_possible(void);
/* By the manager, started by this thread: may both still, and does no quota hold them back? */
bool spare_cpu_is_granted(uint32_t starter);
/* By the manager: does no processor wait for work at this moment? */
bool spare_cpu_is_busy(void);

#endif
