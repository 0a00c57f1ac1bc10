/* SPDX-License-Identifier: MIT */
#ifndef TESTS_SUPPORT_ALLOW_ALL_H
#define TESTS_SUPPORT_ALLOW_ALL_H

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <sys/prctl.h>

/* Installs a filter that allows everything: but nobody can know that.  False if there can be none. */
static inline bool install_allow_all_filter(void)
{
    struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {1, &allow};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

#endif
