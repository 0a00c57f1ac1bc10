/* SPDX-License-Identifier: MIT
 *
 * Whether there is a processor to spare.
 */
#ifndef SUTLER_MANAGER_PLACE_H
#define SUTLER_MANAGER_PLACE_H

#include "base/compiler.h"

/* By a thread of the program: may it run on two cpus? */
bool place_may_be_spare(void);
/* By the manager, started by this thread: may both still, and does no quota hold them back? */
bool place_is_spare(uint32_t starter);
/* By the manager: does no processor wait for work at this moment? */
bool place_is_taken(void);

#endif
