/* SPDX-License-Identifier: MIT
 *
 * The entry points where the fast paths have not been written as assembly: C around one try of a section
 * (sections_aarch64.S), or straight to the slow path in the lock modes.  The hardened library has its own, and takes the
 * free only.
 */
#include "core/core.h"

#if !defined(__x86_64__)
#include <malloc.h>
#include <stdlib.h>

#ifdef SUTLER_HARDENED
#define PLAIN_FREE plain_free
#else
#define PLAIN_FREE sutler_free

void *sutler_malloc(size_t size)
{
    unsigned c;
    if (likely(size < hot.small_limit))
        c = size_class_of_small[size];
    else if (size < hot.medium_limit)
        c = size_class_of_medium[size_class_step(size)];
    else
        return malloc_any(size);
    void *block = hot_pop(c);
    return likely(block != NULL) ? block : malloc_slow(c);
}
#endif

void PLAIN_FREE(void *p)
{
    if (likely((uintptr_t)p - hot.region_base < hot.region_bytes)) {
        struct superblock *s = superblock_of(p);
        if (likely(superblock_owner(s) != NULL && superblock_is_block_start(s, p)))
            switch (hot_push(p, s)) {
            case hot_pushed:
                return;
            case hot_pushed_notify:
                free_notify(s);
                return;
            default:
                break;
            }
    }
    free_slow(p);
}

#ifndef SUTLER_HARDENED
EXPORT void *malloc(size_t size) __attribute__((alias("sutler_malloc")));
EXPORT void *__libc_malloc(size_t size) __attribute__((alias("sutler_malloc")));

#define ALSO_FREE(name) EXPORT void name(void *p) __attribute__((alias("sutler_free")));
ALSO_FREE(free)
ALSO_FREE(cfree)
ALSO_FREE(__libc_free)
ALSO_FREE(free_sized)
ALSO_FREE(free_aligned_sized)
ALSO_FREE(dallocx)
ALSO_FREE(sdallocx)
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
#endif
#endif
