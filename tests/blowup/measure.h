/* SPDX-License-Identifier: MIT
 *
 * Memory against a bound.  Each program counts what it holds in class-rounded bytes (malloc_usable_size), keeps the
 * peak of every size class, and compares the process's resident memory with
 *
 *     bound = sum over classes of (2 x peak live bytes + one superblock per cpu) + what was resident at first
 *
 * The design allows peak / (1 - f - 1/4) per class plus a constant number of superblocks per heap and class: with an
 * emptiness threshold f of 1/4 that is 2 x peak, and there is a heap for each cpu, with one superblock in use.
 * Blowup is not a factor but growth without end, so the loops run long enough that an allocator which never reuses
 * remotely freed blocks exceeds the bound many times over.
 */
#ifndef TESTS_BLOWUP_MEASURE_H
#define TESTS_BLOWUP_MEASURE_H

#include "support/family.h"
#include "support/proc.h"
#include "support/rng.h"

#define MEASURE_CLASSES 16384

struct measure_class {
    size_t usable; /* the class is known by its usable size */
    size_t live, peak;
};

static struct measure_class measure_classes[MEASURE_CLASSES];
static size_t resident_start, resident_peak;

static inline void raise_to(size_t *peak_of, size_t now)
{
    size_t peak = __atomic_load_n(peak_of, __ATOMIC_RELAXED);
    while (now > peak &&
           !__atomic_compare_exchange_n(peak_of, &peak, now, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        continue;
}

static inline struct measure_class *measure_class_of(const void *block)
{
    size_t usable = malloc_usable_size((void *)(uintptr_t)block);
    for (size_t i = usable / 16 * 0x9e3779b1u % MEASURE_CLASSES;; i = (i + 1) % MEASURE_CLASSES) {
        size_t found = __atomic_load_n(&measure_classes[i].usable, __ATOMIC_RELAXED);
        if (found == 0 && __atomic_compare_exchange_n(&measure_classes[i].usable, &found, usable, false,
                                                      __ATOMIC_RELAXED, __ATOMIC_RELAXED))
            return &measure_classes[i];
        if (found == usable)
            return &measure_classes[i];
    }
}

static inline void measure_begin(void)
{
    resident_start = proc_resident_bytes();
}

static inline void live_add(const void *block)
{
    struct measure_class *class = measure_class_of(block);
    raise_to(&class->peak, __atomic_add_fetch(&class->live, class->usable, __ATOMIC_RELAXED));
}

static inline void live_remove(const void *block)
{
    struct measure_class *class = measure_class_of(block);
    __atomic_sub_fetch(&class->live, class->usable, __ATOMIC_RELAXED);
}

static inline void measure_sample(void)
{
    raise_to(&resident_peak, proc_resident_bytes());
}

/* One superblock of every class in use: of eight per doubling, whatever sizes the malloc at hand has. */
static inline size_t superblocks_bytes(void)
{
    static bool counted[64][8];
    size_t bytes = 0;
    for (size_t i = 0; i < MEASURE_CLASSES; i++) {
        size_t usable = measure_classes[i].usable;
        if (usable < 16)
            continue;
        unsigned doubling = 63 - (unsigned)__builtin_clzl(usable - 1), eighth = (usable - 1) >> (doubling - 3) & 7;
        if (!counted[doubling][eighth])
            bytes += usable <= KIB ? 64 * KIB : usable <= 8 * KIB ? 256 * KIB : usable <= 32 * KIB ? MIB : 4 * MIB;
        counted[doubling][eighth] = true;
    }
    return bytes;
}

static inline void measure_end(void)
{
    measure_sample();
    size_t cpus = (size_t)sysconf(_SC_NPROCESSORS_CONF);
    size_t live_peak = 0;
    for (size_t i = 0; i < MEASURE_CLASSES; i++)
        live_peak += measure_classes[i].peak;
    size_t bound = 2 * live_peak + cpus * superblocks_bytes() + resident_start;
    test_say("live peaks of all classes %zu KiB, resident peak %zu KiB, bound %zu KiB\n", live_peak / KIB,
             resident_peak / KIB, bound / KIB);
    CHECK_MSG(resident_peak <= bound, "resident memory %zu KiB exceeds the bound %zu KiB", resident_peak / KIB,
              bound / KIB);
}

/* Writes one byte in each page, so that what is live is also resident. */
static inline void touch(void *block, size_t size)
{
    for (size_t i = 0; i < size; i += 1024)
        ((char *)block)[i] = 1;
}

#endif
