/* SPDX-License-Identifier: MIT
 *
 * What the code asks of the compiler, and the three tiers of invariants.  One that does not hold ends the process with
 * one line, "sutler: internal error: ...", and abort().
 *   CHECK(condition)   always on: cheap, on slow paths, where going on would hand out memory that is somebody else's.
 *   ASSERT(condition)  in debug builds, cheap: locks held, states, arguments.
 *   AUDIT(call)        in debug builds: may walk a whole structure.  The call returns what is wrong with it, or NULL.
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

/* What the thread's variables lie around. */
#if defined(__x86_64__) && !defined(__clang__) && __GNUC__ < 11
static inline void *own_thread_pointer(void)
{
    void *pointer;
    __asm__("movq %%fs:0, %0" : "=r"(pointer));
    return pointer;
}
#else
#define own_thread_pointer() __builtin_thread_pointer()
#endif

/* In a loop that waits for another processor, for a few nanoseconds. */
static inline void cpu_relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#else
    __asm__ volatile("isb" ::: "memory");
#endif
}

/* Ends the process with one line that says `what` and where; in os/errors.c. */
_Noreturn COLD void check_failed(const char *what, const char *file, int line);

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (unlikely(!(condition)))                                                                                    \
            check_failed(#condition, __FILE__, __LINE__);                                                              \
    } while (0)

#ifdef SUTLER_DEBUG
#define ASSERT(condition) CHECK(condition)
#define AUDIT(call)                                                                                                    \
    do {                                                                                                               \
        const char *wrong_ = (call);                                                                                   \
        if (wrong_ != NULL)                                                                                            \
            check_failed(wrong_, __FILE__, __LINE__);                                                                  \
    } while (0)
#else
#define ASSERT(condition) ((void)sizeof(condition))
#define AUDIT(call) ((void)sizeof(call))
#endif

#endif
