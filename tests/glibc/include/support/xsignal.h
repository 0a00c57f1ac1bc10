/* SPDX-License-Identifier: MIT */
#ifndef TESTS_GLIBC_XSIGNAL_H
#define TESTS_GLIBC_XSIGNAL_H

#include "support/check.h"

#include <pthread.h>
#include <signal.h>

static inline void xsignal(int number, void (*handler)(int))
{
    if (signal(number, handler) == SIG_ERR)
        FAIL_EXIT1("signal is refused: %m");
}

#endif
