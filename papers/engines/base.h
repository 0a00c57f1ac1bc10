/* SPDX-License-Identifier: MIT
 *
 * Why: the words every file of the engines is written in.  Nothing here has state.
 */
#ifndef ENGINES_BASE_H
#define ENGINES_BASE_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LIKELY(x)   __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)
#define EXPORT      __attribute__((visibility("default")))

#define LOAD(p)             __atomic_load_n((p), __ATOMIC_ACQUIRE)
#define LOAD_RELAXED(p)     __atomic_load_n((p), __ATOMIC_RELAXED)
#define STORE(p, v)         __atomic_store_n((p), (v), __ATOMIC_RELEASE)
#define STORE_RELAXED(p, v) __atomic_store_n((p), (v), __ATOMIC_RELAXED)
#define FENCE()             __atomic_thread_fence(__ATOMIC_SEQ_CST)

static inline void engine_pause(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory");
#endif
}

#endif
