/* SPDX-License-Identifier: MIT
 *
 * jemalloc's own calls (jemalloc(3), "Non-standard API"), for programs that use them beside malloc and free and mix the
 * blocks: redis does since version 8, linked with the system's jemalloc.  dallocx and sdallocx are free (hot_x86_64.S).
 *
 * Of `flags` the low six bits are the logarithm of the alignment, and MALLOCX_ZERO asks for zeros up to the block's
 * real size.  Arenas and thread caches are not kept (docs/decisions/0013-no-arenas.md): a program that names one, other
 * than arena 0 or no cache, is told so once, and gets a block of the heap.  A size of 0, undefined there, is 1.
 */
#include <malloc.h>
#include <string.h>

#include "core/core.h"
#include "heap/clear.h"
#include "os/line.h"

#define MALLOCX_ZERO 0x40
#define CACHE_SHIFT 8
#define CACHE_NONE 1u /* what asks for a cache is 2 and more */
#define ARENA_SHIFT 20
#define ARENA_0 1u

void *mallocx(size_t size, int flags);
void *rallocx(void *p, size_t size, int flags);
size_t xallocx(void *p, size_t size, size_t extra, int flags);
size_t sallocx(const void *p, int flags);
size_t nallocx(size_t size, int flags);

static COLD void tell_there_are_none(void)
{
    static _Atomic bool is_told;
    if (is_told)
        return;
    is_told = true;
    struct line line = LINE_EMPTY;
    line_text(&line,
              "sutler: mallocx(): arenas and thread caches are not kept; the block comes from the ordinary heap\n");
    line_tell(&line);
}

static size_t alignment_of(int flags)
{
    unsigned arena = (unsigned)flags >> ARENA_SHIFT, cache = (unsigned)flags >> CACHE_SHIFT & 0xfff;
    if (unlikely(arena > ARENA_0 || cache > CACHE_NONE))
        tell_there_are_none();
    return 1ul << (flags & 63);
}

static size_t real_size(const void *p)
{
    return sutler_usable_size((void *)(uintptr_t)p);
}

EXPORT void *mallocx(size_t size, int flags)
{
    bool zero;
    void *block = allocate_or_enomem(max_size(size, 1), alignment_of(flags), &zero);
    if (block != NULL && !zero && (flags & MALLOCX_ZERO) != 0)
        large_clear(block, real_size(block));
    return block;
}

/* realloc need not keep an alignment. */
static void *resize_aligned(void *p, size_t old, size_t size, size_t alignment)
{
    if (block_fits(old, size) && (uintptr_t)p % alignment == 0)
        return p;
    void *block = old != 0 ? allocate_aligned(size, alignment) : NULL;
    if (block != NULL) {
        memcpy(block, p, min_size(old, size));
        sutler_free(p);
    }
    return block;
}

/* With MALLOCX_ZERO all of a block counts as the program's: what is copied ends with the real size, as zeros do. */
EXPORT void *rallocx(void *p, size_t size, int flags)
{
    bool zero = (flags & MALLOCX_ZERO) != 0;
    size_t old = real_size(p), alignment = alignment_of(flags);
    size = max_size(size, zero ? nallocx(size, flags) : 1);
    void *block = alignment <= BLOCK_ALIGNMENT ? sutler_realloc(p, size) : resize_aligned(p, old, size, alignment);
    if (block != NULL && zero) {
        size_t bytes = real_size(block);
        if (bytes > old)
            memset((char *)block + old, 0, bytes - old);
    }
    return block;
}

/* In place, a block's size is what it is. */
EXPORT size_t xallocx(void *p, size_t size, size_t extra, int flags)
{
    (void)size, (void)extra, (void)flags;
    return real_size(p);
}

EXPORT size_t sallocx(const void *p, int flags)
{
    (void)flags;
    return real_size(p);
}

EXPORT size_t nallocx(size_t size, int flags)
{
    return size > (size_t)PTRDIFF_MAX ? 0 : good_size(size, alignment_of(flags));
}
