/* SPDX-License-Identifier: MIT
 *
 * The entry points where no fast path has been written: every call goes the C way, which is the `cpu` mode's anyway.
 */
#include "core/core.h"

#if !defined(__x86_64__)
#include <malloc.h>
#include <stdlib.h>

EXPORT void *malloc(size_t size)
{
    return malloc_medium(size);
}

EXPORT void free(void *p)
{
    free_slow(p);
}

void *sutler_malloc(size_t size)
{
    return malloc_medium(size);
}

void sutler_free(void *p)
{
    free_slow(p);
}

#define ALSO_FREE(name)                                                                                                \
    EXPORT void name(void *p) __attribute__((alias("free")));
ALSO_FREE(cfree)
ALSO_FREE(free_sized)
ALSO_FREE(free_aligned_sized)
ALSO_FREE(_ZdlPv)
ALSO_FREE(_ZdaPv)
ALSO_FREE(_ZdlPvm)
ALSO_FREE(_ZdaPvm)
ALSO_FREE(_ZdlPvSt11align_val_t)
ALSO_FREE(_ZdaPvSt11align_val_t)
ALSO_FREE(_ZdlPvmSt11align_val_t)
ALSO_FREE(_ZdaPvmSt11align_val_t)
ALSO_FREE(_ZdlPvRKSt9nothrow_t)
ALSO_FREE(_ZdaPvRKSt9nothrow_t)
ALSO_FREE(_ZdlPvSt11align_val_tRKSt9nothrow_t)
ALSO_FREE(_ZdaPvSt11align_val_tRKSt9nothrow_t)

void *hot_take(size_t c)
{
    return malloc_slow(c);
}

void *hot_pop(size_t c)
{
    (void)c;
    return NULL;
}

enum hot_pushed hot_push(void *block, struct superblock *s)
{
    (void)block, (void)s;
    return hot_aborted;
}
#endif
