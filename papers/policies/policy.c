/* SPDX-License-Identifier: MIT */
#include "policy.h"

#include <stdatomic.h>

#include "os/line.h"
#include "os/os.h"

#define VARIABLE "SUTLER_POLICY="

static _Atomic int chosen = -1; /* not read yet */

static void choose(const char *entry)
{
    const char *value = entry + sizeof VARIABLE - 1;
    if (text_equal(value, "thread"))
        atomic_store(&chosen, policy_thread);
    else if (text_equal(value, "one"))
        atomic_store(&chosen, policy_one);
}

/* Threads that ask at once read the same environment. */
static COLD void read_environment(void)
{
    os_env_each(VARIABLE, choose);
    int unread = -1;
    atomic_compare_exchange_strong(&chosen, &unread, policy_own);
}

enum policy policy_chosen(void)
{
    if (unlikely(atomic_load_explicit(&chosen, memory_order_relaxed) < 0))
        read_environment();
    return (enum policy)atomic_load_explicit(&chosen, memory_order_relaxed);
}
