/* SPDX-License-Identifier: MIT
 *
 * The entry points where the fast paths have not been written as assembly: C around one try of a section
 * (sections_aarch64.S), or straight to the slow path in lock mode.  The hardened library has its own, and takes the
 * free only.
 */
#include "core/core.h"

#if !defined(__x86_64__)

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
ALSO(malloc, sutler_malloc)
ALSO(__libc_malloc, sutler_malloc)
__asm__(".irp name, free, cfree, __libc_free, free_sized, free_aligned_sized, dallocx, sdallocx, _ZdlPv, _ZdaPv, "
        "_ZdlPvm, _ZdaPvm, _ZdlPvSt11align_val_t, _ZdaPvSt11align_val_t, _ZdlPvmSt11align_val_t, "
        "_ZdaPvmSt11align_val_t, _ZdlPvRKSt9nothrow_t, _ZdaPvRKSt9nothrow_t, "
        "_ZdlPvSt11align_val_tRKSt9nothrow_t, _ZdaPvSt11align_val_tRKSt9nothrow_t\n\t"
        ".globl \\name\n\t.type \\name, %function\n\t.set \\name, sutler_free\n\t.endr");
#endif
#endif
