/* SPDX-License-Identifier: MIT */
#ifndef SUTLER_MANAGER_START_H
#define SUTLER_MANAGER_START_H

/* The next slow path asks the system how much is resident. */
void manager_start_look(void);

/* In a forked child: what the parent had in use does not make a manager worthwhile here. */
void manager_start_forget(void);

#endif
