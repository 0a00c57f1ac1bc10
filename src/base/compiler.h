/* SPDX-License-Identifier: MIT
 *
 * What the code asks of the compiler, and the three tiers of assertion:
 *   CHECK   always on, cheap, guards memory safety; failing ends the process with one line.
 *   ASSERT  debug builds, cheap.
 *   AUDIT   debug builds, may walk a whole structure.
 */
#ifndef SUTLER_BASE_COMPILER_H
#define SUTLER_BASE_COMPILER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)
#define NOINLINE __attribute__((noinline))
#define COLD __attribute__((cold, noinline))
#define EXPORT __attribute__((visibility("default")))
#define CACHE_LINE 64
#define ALIGN_LINE __attribute__((aligned(CACHE_LINE)))
#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

/* Initial-exec: one %fs-relative access, and no call into the loader that could allocate. */
#define THREAD_LOCAL static THREAD_SHARED
/* The same for a variable that several files read. */
#define THREAD_SHARED __thread __attribute__((tls_model("initial-exec")))

/* In a loop that waits for another processor, for a few nanoseconds. */
static inline void cpu_relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#else
    __asm__ volatile("isb" ::: "memory");
#endif
}

/* Ends the process with `what`; in os/line.c, which has the line writer. */
_Noreturn void check_failed(const char *what, const char *file, int line);

#define CHECK(cond)                                                                                                    \
    do {                                                                                                               \
        if (unlikely(!(cond)))                                                                                         \
            check_failed(#cond, __FILE__, __LINE__);                                                                   \
    } while (0)

#ifdef SUTLER_DEBUG
#define ASSERT(cond) CHECK(cond)
#define AUDIT(call) CHECK(call)
#else
#define ASSERT(cond) ((void)sizeof(cond))
#define AUDIT(call) ((void)sizeof(call))
#endif

#endif
