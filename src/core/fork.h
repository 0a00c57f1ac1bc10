/* SPDX-License-Identifier: MIT */
#ifndef SUTLER_CORE_FORK_H
#define SUTLER_CORE_FORK_H

/* Registers the fork handlers; libc must be up. */
void fork_register(void);

#endif
