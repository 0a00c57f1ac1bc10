/* SPDX-License-Identifier: MIT */
#ifndef SUTLER_OS_VDSO_H
#define SUTLER_OS_VDSO_H

/* Finds the vDSO's functions, without libc.  A part of os_init. */
void os_vdso_init(void);

#endif
