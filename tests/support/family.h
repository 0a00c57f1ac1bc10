/* SPDX-License-Identifier: MIT
 *
 * The malloc family as the tests call it.  Members that some C library or peer allocator does not have are weak, so one
 * program runs under all of them and leaves out what is missing; under the library under test nothing may be missing.
 */
#ifndef TESTS_FAMILY_H
#define TESTS_FAMILY_H

#include "check.h"
#include <malloc.h>

#ifdef __cplusplus
extern "C" {
#endif
extern void free_sized(void *block, size_t size) __attribute__((weak));
extern void free_aligned_sized(void *block, size_t alignment, size_t size) __attribute__((weak));
extern void cfree(void *block) __attribute__((weak));
extern size_t malloc_good_size(size_t size) __attribute__((weak));
extern size_t nallocx(size_t size, int flags) __attribute__((weak));
extern void *mallocx(size_t size, int flags) __attribute__((weak));
extern void *rallocx(void *block, size_t size, int flags) __attribute__((weak));
extern size_t xallocx(void *block, size_t size, size_t extra, int flags) __attribute__((weak));
extern size_t sallocx(const void *block, int flags) __attribute__((weak));
extern void dallocx(void *block, int flags) __attribute__((weak));
extern void sdallocx(void *block, size_t size, int flags) __attribute__((weak));
#ifdef __cplusplus
}
#endif

/* False when `symbol` is missing and may be; fails when the library under test lacks it. */
#define FAMILY_HAS(symbol) family_has((void *)(uintptr_t)(symbol), #symbol)

static inline bool family_has(void *address, const char *name)
{
    if (opaque(address) != NULL)
        return true;
    CHECK_MSG(!test_is_sutler(), "%s is missing", name);
    test_say("note: this allocator has no %s\n", name);
    return false;
}

#endif
