/* SPDX-License-Identifier: MIT
 *
 * The C++ operators, by their mangled names: libstdc++ is used if the program has it, never required.  Deletes are
 * other names of free; new and new[] have a fast path of their own.
 */
#include "core/core.h"

/* std::align_val_t arrives as a size.  The nothrow forms are in nothrow.c. */
#define OPERATOR(name, parameters, expression)                                                                         \
    EXPORT void *name parameters;                                                                                      \
    EXPORT void *name parameters                                                                                       \
    {                                                                                                                  \
        return expression;                                                                                             \
    }

static inline void *new_aligned(size_t size, size_t alignment)
{
    void *block = allocate_aligned(size, alignment);
    return likely(block != NULL) ? block : new_block(size, alignment);
}

OPERATOR(_ZnwmSt11align_val_t, (size_t size, size_t alignment), new_aligned(size, alignment))
OPERATOR(_ZnamSt11align_val_t, (size_t size, size_t alignment), new_aligned(size, alignment))

#if !defined(__x86_64__) /* elsewhere, in core/hot_x86_64.S */
OPERATOR(_Znwm, (size_t size), new_block(size, BLOCK_ALIGNMENT))
OPERATOR(_Znam, (size_t size), new_block(size, BLOCK_ALIGNMENT))
#endif
