/* SPDX-License-Identifier: MIT */
#include "os/guest.h"

#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>

#include "os/os.h"
#include "os/syscall.h"

/* glibc's SIGSETXID, which glibc does not let anybody else block.  glibc itself sends it to the threads it knows. */
#define SIGNAL_TO_ALL_THREADS 33

void os_guest_renounce(void)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    const struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {0};
    sys_call(SYS_capset, (long)&header, (long)none, 0, 0, 0, 0);
    uint64_t answered = 1ull << (SIGNAL_TO_ALL_THREADS - 1);
    sys_call(SYS_rt_sigprocmask, SIG_UNBLOCK, (long)&answered, 0, sizeof answered, 0, 0);
}

/* The system call returns 20 minus the nice value: 1 to 40, so that errors are told apart. */
static long nice_of(uint32_t tid)
{
    return 20 - sys_call(SYS_getpriority, PRIO_PROCESS, tid, 0, 0, 0, 0);
}

void os_guest_take_no_precedence(void)
{
    long policy = sys_call(SYS_sched_getscheduler, 0, 0, 0, 0, 0, 0) & ~(long)SCHED_RESET_ON_FORK;
    if (policy != SCHED_OTHER && policy != SCHED_BATCH && policy != SCHED_IDLE) {
        const struct sched_param none = {0};
        sys_call(SYS_sched_setscheduler, 0, SCHED_OTHER, (long)&none, 0, 0, 0);
    }
    long program = nice_of(os_process_id());
    if (program > nice_of(0) && program < 20) /* it could not go back: that takes a capability */
        sys_call(SYS_setpriority, PRIO_PROCESS, 0, program, 0, 0, 0);
}
