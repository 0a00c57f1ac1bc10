/* SPDX-License-Identifier: MIT
 *
 * Why: LFMalloc's authors emulated compare-and-swap with a restartable critical section and found it 1.8 times as fast
 * as the instruction; this is that experiment with Linux's restartable sequences.  The emulation is good for data that
 * belongs to one cpu: it is safe against preemption and migration, not against another cpu's access.
 *
 * A section is registered by pointing the thread's rseq area at a descriptor {start, length, abort}; the kernel, when
 * it preempts, moves or signals the thread inside, resumes it at the abort address.  The last instruction of the
 * section is the store that commits.  Outputs leave through the jump taken, never through a register: compilers have
 * miscompiled `asm goto` with outputs.
 *
 * x86-64 only, and only where the C library has registered an rseq area (glibc since 2.35).
 */
#ifndef BENCH_RCS_CAS_H
#define BENCH_RCS_CAS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__x86_64__) && defined(__linux__)

#define RCS_EMULATED 1

extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned int __rseq_size __attribute__((weak));

/* The part of the kernel's structure that is used; fixed by the system call's ABI. */
struct rcs_area {
    uint32_t cpu_id_start;
    uint32_t cpu_id;
    uint64_t section;
};

static inline struct rcs_area *rcs_area_of_thread(void)
{
    uintptr_t thread_pointer;
    __asm__("mov %%fs:0, %0" : "=r"(thread_pointer));
    return (struct rcs_area *)(thread_pointer + (uintptr_t)__rseq_offset);
}

static inline bool rcs_is_available(void)
{
    if (&__rseq_offset == NULL || &__rseq_size == NULL || __rseq_size == 0)
        return false;
    return (int32_t) * (volatile uint32_t *)&rcs_area_of_thread()->cpu_id >= 0;
}

static inline uint32_t rcs_cpu(const struct rcs_area *area)
{
    return *(const volatile uint32_t *)&area->cpu_id;
}

enum rcs_outcome {
    RCS_DONE,    /* the value was `expected` and is now `wanted` */
    RCS_DIFFERS, /* the value was something else */
    RCS_RETRY,   /* interrupted, or not on `cpu`: nothing was written */
};

/* *word: expected -> wanted, if the thread is on `cpu` all the while. */
static inline __attribute__((always_inline)) enum rcs_outcome
rcs_compare_and_store(struct rcs_area *area, uint32_t cpu, uint64_t *word, uint64_t expected, uint64_t wanted)
{
    __asm__ goto(".pushsection __rseq_cs, \"aw\"\n\t"
                 ".balign 32\n"
                 "3:\n\t"
                 ".long 0, 0\n\t"
                 ".quad 1f, 2f - 1f, 4f\n\t"
                 ".popsection\n\t"
                 "leaq 3b(%%rip), %%rax\n\t"
                 "movq %%rax, %[section]\n"
                 "1:\n\t"
                 "cmpl %[cpu], %[cpu_id]\n\t"
                 "jne %l[retry]\n\t"
                 "cmpq %[expected], %[word]\n\t"
                 "jne %l[differs]\n\t"
                 "movq %[wanted], %[word]\n"
                 "2:\n\t"
                 ".pushsection __rseq_abort, \"ax\"\n\t"
                 ".byte 0x0f, 0xb9, 0x3d\n\t" /* an undefined instruction around the signature the kernel checks */
                 ".long 0x53053053\n"
                 "4:\n\t"
                 "jmp %l[retry]\n\t"
                 ".popsection"
                 :
                 : [section] "m"(area->section), [cpu_id] "m"(area->cpu_id), [cpu] "r"(cpu), [word] "m"(*word),
                   [expected] "r"(expected), [wanted] "r"(wanted)
                 : "memory", "cc", "rax"
                 : retry, differs);
    return RCS_DONE;
differs:
    return RCS_DIFFERS;
retry:
    return RCS_RETRY;
}

#else

#define RCS_EMULATED 0

#endif
#endif
