/* SPDX-License-Identifier: MIT */
#ifndef SUTLER_MANAGER_LOOP_H
#define SUTLER_MANAGER_LOOP_H

/* The manager's thread: returns when it was asked to stop, or is in the program's way. */
void manager_run(void);

#endif
