/* SPDX-License-Identifier: MIT
 *
 * Whether there is a processor to spare.
 */
#ifndef SUTLER_MANAGER_PLACE_H
#define SUTLER_MANAGER_PLACE_H

#include "base/compiler.h"

/* The program's user insists (SUTLER_MANAGER=on). */
bool place_is_asked_for(void);
/* By a thread of the program: may it run on two cpus? */
bool place_may_be_spare(void);
/* By the manager, started by this thread: may both still, and does no quota hold them back? */
bool place_is_spare(uint32_t starter);

#endif
