/* SPDX-License-Identifier: MIT
 *
 * malloc, calloc and operator new of the hardened library.
 */
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>

#include "hardened/hardened.h"
#include "heap/clear.h"
#include "hardened/report.h"
#include "hardened/sweep.h"
#include "core/locked.h"

static COLD void report_reused(void *p, size_t bytes)
{
    report_written("malloc", p);
    clear_block(p, bytes);
}

static void *dress(void *p, size_t size, size_t bytes, enum family family)
{
    ASSERT(size <= bytes);
    if (likely(mitigated(mitigation_check)) && unlikely(!is_clear_behind_next(p, min_size(bytes, CHECKED_BYTES_MAX))))
        report_reused(p, bytes);
    *(uint64_t *)p = 0;
    if (likely(mitigated(mitigation_canary)))
        canary_set_in_zeros(p, size, bytes - size);
    state_set_live(p, bytes, bytes - size, family);
    return p;
}

void *harden_block(void *p, size_t size, size_t bytes, enum family family)
{
    return dress(p, size, bytes, family);
}

static NOINLINE void *allocate_small(size_t size, size_t alignment, bool *zero, enum family family)
{
    void *p = allocate_plain(size + marks.pad, alignment, zero);
    if (unlikely(p == NULL) && (quarantine_release_everything() || sweep_give_in()))
        p = allocate_plain(size + marks.pad, alignment, zero);
    if (unlikely(p == NULL))
        return NULL;
    struct block block = block_find(p);
    if (unlikely(block.kind == block_signal_safe))
        clear_block(p, block.bytes); /* it may hold anything */
    return dress(p, size, block.bytes, family);
}

void *harden_allocate(size_t size, size_t alignment, bool *zero, enum family family)
{
    *zero = false;
    if (unlikely(size > PTRDIFF_MAX || alignment > PTRDIFF_MAX - size) || unlikely(!core_ready()))
        return NULL;
    if (size_class_of_aligned(size + marks.pad, alignment) < CLASS_COUNT)
        return allocate_small(size, alignment, zero, family);
    return large_harden(size, alignment, zero, family);
}

void *allocate(size_t size, size_t alignment, bool *zero)
{
    return harden_allocate(size, alignment, zero, family_malloc);
}

/* A block of a superblock; NULL: it is not that simple, or the fast paths are closed or the mitigations unusual. */
static inline void *take_quickly(size_t size, enum family family)
{
    unsigned c;
    if (likely(size < hot.small_limit))
        c = size_class_of_small[size + 1];
    else if (size < hot.medium_limit)
        c = size_class_of_medium[size_class_step(size + 1)];
    else
        return NULL;
    void *p = hot_pop(c);
    if (unlikely(p == NULL))
        return NULL;
    size_t bytes = size_class[c].bytes;
    if (unlikely(!is_clear_behind_next(p, min_size(bytes, CHECKED_BYTES_MAX))))
        report_reused(p, bytes);
    *(uint64_t *)p = 0;
    canary_set_in_zeros(p, size, bytes - size);
    state_set_live(p, bytes, bytes - size, family);
    return p;
}

static NOINLINE void *take_slowly(size_t size)
{
    bool zero;
    return allocate_or_enomem(size, BLOCK_ALIGNMENT, &zero);
}

void *sutler_malloc(size_t size)
{
    void *p = take_quickly(size, family_malloc);
    return likely(p != NULL) ? p : take_slowly(size);
}
ALSO(malloc, sutler_malloc)

EXPORT void *calloc(size_t count, size_t size)
{
    size_t bytes;
    if (unlikely(__builtin_mul_overflow(count, size, &bytes))) {
        errno = ENOMEM;
        return NULL;
    }
    bool zero = false;
    slow_if_unmanaged();
    void *p = take_quickly(bytes, family_malloc);
    if (p == NULL && (p = allocate_or_enomem(bytes, BLOCK_ALIGNMENT, &zero)) == NULL)
        return NULL;
    if (!zero && (unlikely(bytes + marks.pad > CHECKED_BYTES_MAX) || unlikely(!marks.usual)))
        large_clear(p, bytes); /* less has just been seen to be zero */
    return p;
}

static NOINLINE void *take_new_slowly(size_t size, size_t alignment, enum family family)
{
    bool zero;
    void *p;
    while (unlikely((p = harden_allocate(size, alignment, &zero, family)) == NULL))
        new_failed();
    return p;
}

static inline void *take_new(size_t size, size_t alignment, enum family family)
{
    void *p = alignment <= BLOCK_ALIGNMENT ? take_quickly(size, family) : NULL;
    return likely(p != NULL) ? p : take_new_slowly(size, alignment, family);
}

/* std::align_val_t arrives as a size.  The nothrow forms are in entry/nothrow.c. */
#define OPERATOR(name, parameters, expression)                                                                         \
    EXPORT void *name parameters;                                                                                      \
    EXPORT void *name parameters                                                                                       \
    {                                                                                                                  \
        return expression;                                                                                             \
    }

OPERATOR(_Znwm, (size_t size), take_new(size, BLOCK_ALIGNMENT, family_new))
OPERATOR(_Znam, (size_t size), take_new(size, BLOCK_ALIGNMENT, family_array))
OPERATOR(_ZnwmSt11align_val_t, (size_t size, size_t alignment), take_new(size, alignment, family_new))
OPERATOR(_ZnamSt11align_val_t, (size_t size, size_t alignment), take_new(size, alignment, family_array))

ALSO(__libc_malloc, malloc)
ALSO(__libc_calloc, calloc)
