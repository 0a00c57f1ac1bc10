/* SPDX-License-Identifier: MIT
 *
 * A library that registers each thread's rseq area itself, as where libc is too old to do it (src/rcs/area.h).  For
 * tests, with GLIBC_TUNABLES=glibc.pthread.rseq=0.
 */
#include "rcs/area.h"

bool __wrap_area_is_of_libc(void);
bool __wrap_area_is_of_libc(void)
{
    return false;
}
