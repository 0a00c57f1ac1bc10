/* SPDX-License-Identifier: MIT
 *
 * Aligned allocation.  Every block's address is a multiple of its size class's largest power-of-two divisor, so an
 * aligned request is a matter of choosing the class; above a slice it is a matter of choosing the span.
 */
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>

#include "core/core.h"
#include "os/os.h"

static void *take_aligned(size_t alignment, size_t size)
{
    bool zero;
    return allocate_or_enomem(size, alignment, &zero);
}

EXPORT void *aligned_alloc(size_t alignment, size_t size)
{
    if (unlikely(!is_power_of_two(alignment))) {
        errno = EINVAL;
        return NULL;
    }
    return take_aligned(alignment, size);
}

/* As glibc: an alignment that is no power of two is rounded up to one. */
EXPORT void *memalign(size_t alignment, size_t size)
{
    if (unlikely(alignment > (size_t)PTRDIFF_MAX + 1)) {
        errno = EINVAL;
        return NULL;
    }
    if (!is_power_of_two(alignment))
        alignment = alignment == 0 ? 1 : 1ul << (top_bit(alignment) + 1);
    return take_aligned(alignment, size);
}

EXPORT int posix_memalign(void **out, size_t alignment, size_t size)
{
    if (unlikely(!is_power_of_two(alignment) || alignment % sizeof(void *) != 0))
        return EINVAL;
    bool zero;
    void *block = allocate_or_enomem(size, alignment, &zero); /* errno as well: glibc's own does, and programs look */
    if (unlikely(block == NULL))
        return ENOMEM;
    *out = block;
    return 0;
}

EXPORT void *valloc(size_t size)
{
    core_ready(); /* learns the page size */
    return take_aligned(os_page_bytes, size);
}

EXPORT void *pvalloc(size_t size)
{
    core_ready();
    size_t rounded = align_up(size, os_page_bytes);
    if (unlikely(rounded < size)) {
        errno = ENOMEM;
        return NULL;
    }
    return take_aligned(os_page_bytes, rounded);
}

/* glibc's other names, by which programs with a malloc of their own find the system's.  They free such blocks with our
 * free. */
ALSO(__libc_memalign, memalign)
ALSO(__libc_valloc, valloc)
ALSO(__libc_pvalloc, pvalloc)
ALSO(__posix_memalign, posix_memalign)
