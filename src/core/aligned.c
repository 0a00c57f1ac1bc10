/* SPDX-License-Identifier: MIT
 *
 * Aligned allocation.  Every block's address is a multiple of its size class's largest power-of-two divisor, so an
 * aligned request is one of a size that is rounded up; above a slice it is a matter of choosing the span.
 */
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>

#include "core/core.h"
#include "os/os.h"

EXPORT void *aligned_alloc(size_t alignment, size_t size)
{
    if (unlikely(!is_power_of_two(alignment))) {
        errno = EINVAL;
        return NULL;
    }
    return allocate_aligned(size, alignment);
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
    return allocate_aligned(size, alignment);
}

EXPORT int posix_memalign(void **out, size_t alignment, size_t size)
{
    if (unlikely(!is_power_of_two(alignment) || alignment % sizeof(void *) != 0))
        return EINVAL;
    void *block = allocate_aligned(size, alignment); /* errno as well: glibc's own does, and programs look */
    if (unlikely(block == NULL))
        return ENOMEM;
    *out = block;
    return 0;
}

EXPORT void *valloc(size_t size)
{
    core_ready(); /* learns the page size */
    return allocate_aligned(size, os_page_bytes);
}

void *pvalloc(size_t size); /* musl does not declare it */

EXPORT void *pvalloc(size_t size)
{
    core_ready();
    size_t rounded = align_up(size, os_page_bytes);
    if (unlikely(rounded < size)) {
        errno = ENOMEM;
        return NULL;
    }
    return allocate_aligned(rounded, os_page_bytes);
}

/* glibc's other names, by which programs with a malloc of their own find the system's.  They free such blocks with our
 * free. */
ALSO(__libc_memalign, memalign)
ALSO(__libc_valloc, valloc)
ALSO(__libc_pvalloc, pvalloc)
ALSO(__posix_memalign, posix_memalign)
