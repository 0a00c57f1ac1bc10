/* SPDX-License-Identifier: MIT
 *
 * What the sections ask of the system on aarch64 only, where not every kernel keeps rseq's promises (rcs/restart.c).
 *
 * The signal is SIGURG.  By default it is ignored, so if somebody else sends one at the same moment nothing is lost,
 * and debuggers pass it on without stopping.  A POSIX timer sends it: that is not inherited over exec, and does not
 * disturb the program's own timers.
 */
#include "os/os.h"

#if defined(__aarch64__)
#include <signal.h>
#include <sys/utsname.h>
#include <time.h>

#include "os/filter.h"
#include "os/line.h"
#include "os/syscall.h"

/* The kernel's own layouts. */
struct action {
    void (*handler)(int);
    unsigned long flags;
    void (*restorer)(void);
    uint64_t mask;
};
struct event {
    uint64_t value;
    int signal, notify;
    int thread, rest[11];
};
_Static_assert(sizeof(struct event) == sizeof(struct sigevent), "what timer_create reads");
#define NOTIFY_THREAD 4 /* SIGEV_THREAD_ID */

static struct os_interruption *present;

static void on_interrupt(int number)
{
    (void)number;
    present->was_inside = present->inside;
    present->happened = 1;
}

static long set_action(const struct action *now, struct action *before)
{
    return sys_call(SYS_rt_sigaction, SIGURG, (long)now, (long)before, sizeof now->mask, 0, 0);
}

static long set_mask(int how, const uint64_t *now, uint64_t *before)
{
    return sys_call(SYS_rt_sigprocmask, how, (long)now, (long)before, sizeof *now, 0, 0);
}

static bool arm(int timer, uint64_t delay_ns)
{
    const struct itimerspec once = {.it_value = {.tv_nsec = (long)delay_ns}};
    return !sys_failed(sys_call(SYS_timer_settime, timer, 0, (long)&once, 0, 0, 0));
}

bool os_interrupt_begin(struct os_interruption *i, uint64_t delay_ns)
{
    const struct event event = {.signal = SIGURG, .notify = NOTIFY_THREAD, .thread = (int)os_thread_id()};
    const struct action catch = {.handler = on_interrupt, .flags = SA_RESTART};
    const uint64_t urgent = 1ul << (SIGURG - 1);
    struct action before;
    present = i;
    if (sys_failed(sys_call(SYS_timer_create, CLOCK_MONOTONIC, (long)&event, (long)&i->timer, 0, 0, 0)))
        return false;
    set_action(&catch, &before);
    i->handler_before = before.handler;
    i->flags_before = before.flags;
    i->mask_before = before.mask;
    set_mask(SIG_UNBLOCK, &urgent, &i->signals_before);
    if (arm(i->timer, delay_ns))
        return true;
    os_interrupt_end(i);
    return false;
}

void os_interrupt_end(struct os_interruption *i)
{
    /* A signal that is on its way comes before this call returns; after it, none does. */
    sys_call(SYS_timer_delete, i->timer, 0, 0, 0, 0, 0);
    set_mask(SIG_SETMASK, &i->signals_before, NULL);
    const struct action before = {i->handler_before, i->flags_before, NULL, i->mask_before};
    set_action(&before, NULL);
}

unsigned os_kernel_release(void)
{
    struct utsname name;
    if (sys_failed(sys_call_if(need_plain, SYS_uname, (long)&name, 0, 0, 0, 0, 0)))
        return 0;
    const char *minor = name.release;
    while (*minor != '.' && *minor != '\0')
        minor++;
    size_t low = *minor == '.' ? text_number(minor + 1) : 0;
    return (unsigned)(text_number(name.release) * 1000 + (low == SIZE_MAX ? 0 : low));
}
#endif
