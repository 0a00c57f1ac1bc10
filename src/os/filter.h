/* SPDX-License-Identifier: MIT
 *
 * System calls by need (docs/security.md).  What a malloc cannot do without is called by sys_call.  Everything else
 * goes through here and answers -EPERM, without a call, where it might end the process: a filter need not let through
 * what only makes an allocator faster.  The callers take that for any other refusal.
 */
#ifndef SUTLER_OS_FILTER_H
#define SUTLER_OS_FILTER_H

#include "os/syscall.h"

enum need {
    need_luxury, /* made where the options allow it, and no filter is in force but one the operator vouches for */
    need_plain,  /* made where no filter is in force, whatever the options; or where luxuries are */
};

long sys_call_if(enum need need, long number, long a, long b, long c, long d, long e, long f);

/* Asks whether a filter was inherited.  A part of os_init. */
void os_filter_init(void);

/* Around several calls.  False: none may be made, and there is nothing to end. */
bool need_begins(enum need need);
void need_ends(void);

#endif
