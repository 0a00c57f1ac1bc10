/* SPDX-License-Identifier: MIT
 *
 * Does this kernel restart an interrupted section, and may its mm_cid be believed?  x86-64's always did and may.  On
 * aarch64 neither is certain (docs/decisions/0015-sections-on-aarch64.md).
 */
#ifndef SUTLER_RCS_RESTART_H
#define SUTLER_RCS_RESTART_H

#include "rcs/rcs.h"

#if defined(__aarch64__)
bool restart_is_proven(void);
bool mm_cid_is_sound(void);
#else
static inline bool restart_is_proven(void)
{
    return true;
}
static inline bool mm_cid_is_sound(void)
{
    return true;
}
#endif

/* A section that stores 1 to *inside and then loads *leave until it is not 0, or for `turns` turns.  rcs_aborted: it
 * was restarted, as it must be if it was interrupted; rcs_changed: it saw *leave; rcs_done: it had its turns. */
enum rcs_result rcs_linger(_Atomic uint32_t *inside, const _Atomic uint32_t *leave, uint64_t turns);

#endif
