/* SPDX-License-Identifier: MIT
 *
 * Policies that papers describe and the library does not have, for comparison with what it does: one of them at a time,
 * chosen by the environment (SUTLER_POLICY) when a heap is first chosen.  Each __wrap_ function stands where the
 * library's objects call the function of that name, and __real_ is that function (ld(1), --wrap).
 */
#ifndef SUTLER_POLICIES_POLICY_H
#define SUTLER_POLICIES_POLICY_H

#include "base/compiler.h"

enum policy {
    policy_own,    /* the library's */
    policy_thread, /* SUTLER_POLICY=thread, with SUTLER_SYNC=cpu: heap_per_thread.c */
    policy_one,    /* SUTLER_POLICY=one: one_online.c */
};
enum policy policy_chosen(void);

#endif
