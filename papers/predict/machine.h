/* SPDX-License-Identifier: MIT
 *
 * Why: what the predictor needs of the processor, in a few instructions each: the floating-point control word and the
 * exception flags, and a clock.  The C library's functions for these go through memory and the x87 unit (fegetenv takes
 * longer than a sine).
 *
 * The environment is the control bits alone: rounding, how denormals are treated, which exceptions trap.  x86-64: MXCSR
 * (the x87 unit's rounding is set along with it by fesetround, so MXCSR speaks for both).  aarch64: FPCR.
 */
#ifndef PREDICT_MACHINE_H
#define PREDICT_MACHINE_H

#include <fenv.h>
#include <stdbool.h>
#include <stdint.h>

#if defined(__x86_64__)

#define FP_FLAGS 0x3Fu
#define FP_MASKS 0x1F80u
#define FP_ROUNDING 0x6000u

static inline uint32_t fp_environment(void)
{
    return __builtin_ia32_stmxcsr() & ~FP_FLAGS;
}

/* False where an exception would raise a signal. */
static inline bool fp_environment_is_quiet(uint32_t environment)
{
    return (environment & FP_MASKS) == FP_MASKS;
}

/* Leaves no flag raised.  For the second thread: it takes the x87 unit along. */
static inline void fp_set_environment(uint32_t environment)
{
    static const int rounding[] = {FE_TONEAREST, FE_DOWNWARD, FE_UPWARD, FE_TOWARDZERO};
    if (((environment ^ fp_environment()) & FP_ROUNDING) != 0)
        fesetround(rounding[environment >> 13 & 3]);
    __asm__ volatile("fnclex");
    __builtin_ia32_ldmxcsr(environment);
}

/* The flags raised, those of the x87 unit included. */
static inline uint32_t fp_flags_raised(void)
{
    return (__builtin_ia32_stmxcsr() & FP_FLAGS) | (uint32_t)fetestexcept(FE_ALL_EXCEPT);
}

static inline void fp_raise_flags(uint32_t flags)
{
    uint32_t now = __builtin_ia32_stmxcsr();
    if ((now & flags) != flags)
        __builtin_ia32_ldmxcsr(now | flags);
}

/* Clears the flags; returns those that were raised, for fp_raise_flags(). */
static inline uint32_t fp_take_flags(void)
{
    uint32_t now = __builtin_ia32_stmxcsr();
    uint16_t x87;
    __asm__ volatile("fnstsw %0" : "=a"(x87));
    if ((now & FP_FLAGS) != 0)
        __builtin_ia32_ldmxcsr(now & ~FP_FLAGS);
    if ((x87 & FP_FLAGS) != 0)
        __asm__ volatile("fnclex");
    return (now | x87) & FP_FLAGS;
}

static inline uint64_t ticks_now(void)
{
    return __builtin_ia32_rdtsc();
}

/* When all that comes before is done: for single calls of a few nanoseconds. */
static inline uint64_t ticks_then(void)
{
    __builtin_ia32_lfence();
    return ticks_now();
}

#elif defined(__aarch64__)

static inline uint32_t fp_environment(void)
{
    return (uint32_t)__builtin_aarch64_get_fpcr();
}

static inline bool fp_environment_is_quiet(uint32_t environment)
{
    return (environment & 0x9F00u) == 0;
}

static inline uint32_t fp_flags_raised(void)
{
    return __builtin_aarch64_get_fpsr() & 0x9Fu;
}

static inline void fp_raise_flags(uint32_t flags)
{
    uint32_t now = __builtin_aarch64_get_fpsr();
    if ((now & flags) != flags)
        __builtin_aarch64_set_fpsr(now | flags);
}

static inline uint32_t fp_take_flags(void)
{
    uint32_t now = __builtin_aarch64_get_fpsr();
    __builtin_aarch64_set_fpsr(now & ~0x9Fu);
    return now & 0x9Fu;
}

static inline void fp_set_environment(uint32_t environment)
{
    __builtin_aarch64_set_fpcr(environment);
    fp_take_flags();
}

static inline uint64_t ticks_now(void)
{
    uint64_t ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
}

static inline uint64_t ticks_then(void)
{
    __asm__ volatile("isb" ::: "memory");
    return ticks_now();
}

#else
#error "predict: x86-64 and aarch64 only"
#endif

#endif
