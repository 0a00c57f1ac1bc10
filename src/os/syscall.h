/* SPDX-License-Identifier: MIT
 *
 * System calls without libc: they leave errno alone (free must), work before libc is initialised, and cannot be
 * interposed.  Results are the kernel's: negative values down to -4095 are -errno.
 */
#ifndef SUTLER_OS_SYSCALL_H
#define SUTLER_OS_SYSCALL_H

#include <errno.h>
#include <sys/syscall.h>

#include "base/compiler.h"

#if defined(__x86_64__)
static inline long sys_call(long number, long a, long b, long c, long d, long e, long f)
{
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}
#elif defined(__aarch64__)
static inline long sys_call(long number, long a, long b, long c, long d, long e, long f)
{
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    register long x5 __asm__("x5") = f;
    __asm__ volatile("svc 0"
                     : "+r"(x0)
                     : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                     : "memory");
    return x0;
}
#else
#error "Sutler knows x86-64 and aarch64"
#endif

static inline bool sys_failed(long result)
{
    return (unsigned long)result > -4096ul;
}

#endif
