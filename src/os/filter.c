/* SPDX-License-Identifier: MIT
 *
 * Whether a seccomp filter is in force is asked once, at the start, and from then on noted when the program installs
 * one: to ask later could be the very call that ends the process.  One thread's filter counts for all.
 */
#include "os/filter.h"

#include <linux/seccomp.h>
#include <stdatomic.h>
#include <sys/prctl.h>

#include "os/os.h"

/* The bits from FILTER_COMING on are a count: of filters that are being installed right now. */
enum { FILTER_INHERITED = 1, FILTER_OWN = 2, FILTER_COMING = 4 };
static _Atomic uint32_t filters;

static _Atomic bool luxuries_allowed = true; /* by the options */
static _Atomic uint32_t inside;              /* threads in the middle of calls a filter might forbid */

void os_filter_init(void)
{
    if (sys_call(SYS_prctl, PR_GET_SECCOMP, 0, 0, 0, 0, 0) != SECCOMP_MODE_DISABLED)
        atomic_fetch_or(&filters, FILTER_INHERITED);
}

bool os_is_filtered(void)
{
    return atomic_load(&filters) != 0;
}

void os_allow_luxuries(bool allowed)
{
    atomic_store(&luxuries_allowed, allowed);
}

bool os_may_call_luxuries(void)
{
    return atomic_load(&luxuries_allowed) && (atomic_load(&filters) & ~(uint32_t)FILTER_INHERITED) == 0;
}

static bool may_call(enum need need)
{
    return os_may_call_luxuries() || (need == need_plain && !os_is_filtered());
}

bool need_begins(enum need need)
{
    atomic_fetch_add(&inside, 1); /* before the look: partner of os_expect_filter */
    if (may_call(need))
        return true;
    need_ends();
    return false;
}

void need_ends(void)
{
    atomic_fetch_sub(&inside, 1);
}

bool os_has_rseq_fence(void)
{
    return may_call(need_plain);
}

long sys_call_if(enum need need, long number, long a, long b, long c, long d, long e, long f)
{
    if (!need_begins(need))
        return -EPERM;
    long result = sys_call(number, a, b, c, d, e, f);
    need_ends();
    return result;
}

void os_expect_filter(void)
{
    /* A thread whose signal handler installs the filter stays inside meanwhile, and a forked child counts threads that
     * it does not have.  So this does not wait for ever. */
    const uint64_t moment_ns = 100000;
    atomic_fetch_add(&filters, FILTER_COMING);
    for (int i = 0; i < 100 && atomic_load(&inside) != 0; i++)
        os_sleep(moment_ns);
}

void os_note_filter(bool is_installed)
{
    if (is_installed)
        atomic_fetch_or(&filters, FILTER_OWN);
    atomic_fetch_sub(&filters, FILTER_COMING);
}
