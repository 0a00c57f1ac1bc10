/* SPDX-License-Identifier: MIT
 *
 * realloc and malloc_usable_size of the hardened library: a block's size is the one that was asked for.
 */
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>

#include "hardened/hardened.h"
#include "hardened/report.h"

static COLD void *report_gone(const void *p)
{
    report_not_live("realloc", p);
    errno = EINVAL;
    return NULL;
}

/* A block of a superblock that stays where it is. */
static void *resize_here(void *p, struct live live, size_t size)
{
    if (unlikely(!state_resize_from(p, live.state)))
        return report_gone(p); /* another thread has freed it meanwhile */
    __atomic_thread_fence(__ATOMIC_RELEASE);
    canary_clear(p, live.size, live.bytes - live.size);
    if (size < live.size && mitigated(mitigation_zero))
        memset((char *)p + size, 0, live.size - size);
    if (mitigated(mitigation_canary))
        canary_set(p, size, live.bytes - size);
    state_set_live(p, live.bytes, live.bytes - size, live.family);
    return p;
}

static NOINLINE void *move(void *p, struct live live, size_t size)
{
    int error = errno;
    const bool is_growing_span = live.kind == block_large && size > live.size;
    void *block = is_growing_span ? large_harden_grown(size, live.family) : NULL;
    if (block == NULL)
        block = sutler_malloc(size);
    if (unlikely(block == NULL)) {
        if (size > live.size)
            return NULL;
        errno = error; /* it stays where it is */
        if (live.kind == block_superblock)
            return resize_here(p, live, size);
        void *same = large_reharden(p, live, size);
        return same != NULL ? same : p; /* as large as before, which is enough */
    }
    memcpy(block, p, min_size(live.size, size));
    if (live.kind == block_superblock)
        harden_retire(p, live, "realloc", __builtin_return_address(0));
    else
        large_unharden(
            p, (struct claim){.function = "realloc", .caller = __builtin_return_address(0), .family = live.family});
    return block;
}

void *sutler_realloc(void *p, size_t size)
{
    struct live live;
    if (p == NULL)
        return sutler_malloc(size);
    if (size == 0) { /* as glibc: frees, and says so */
        harden_free(p, (struct claim){.function = "realloc", .family = family_malloc});
        return NULL;
    }
    enum found found = find_quickly(p, &live) ? found_live : harden_find(p, &live);
    if (unlikely(found != found_live)) {
        errno = found == found_unknown ? ENOMEM : EINVAL;
        if (found != found_unknown)
            report_not_live("realloc", p);
        return NULL;
    }
    harden_check(p, live, (struct claim){.function = "realloc", .family = family_malloc});
    if (live.kind == block_superblock && size <= live.bytes && block_fits(live.bytes, size + marks.pad))
        return resize_here(p, live, size);
    slow_if_unmanaged();
    /* A span whose end would be free at once is copied, so that all of it goes through quarantine. */
    const bool keeps_its_end =
        live.kind != block_large || slices_for(size + marks.pad) >= slices_for(live.size + marks.pad);
    void *moved = keeps_its_end && size > CLASS_BYTES_MAX ? large_reharden(p, live, size) : NULL;
    return moved != NULL ? moved : move(p, live, size);
}
ALSO(realloc, sutler_realloc)

EXPORT void *reallocarray(void *p, size_t count, size_t size)
{
    size_t bytes;
    if (unlikely(__builtin_mul_overflow(count, size, &bytes))) {
        errno = ENOMEM;
        return NULL;
    }
    return realloc(p, bytes);
}

size_t sutler_usable_size(void *p)
{
    struct live live;
    if (p == NULL)
        return 0;
    enum found found = find_quickly(p, &live) ? found_live : harden_find(p, &live);
    if (likely(found == found_live))
        return live.size;
    if (found != found_unknown)
        report_not_live("malloc_usable_size", p);
    return 0;
}
ALSO(malloc_usable_size, sutler_usable_size)

ALSO(__libc_realloc, realloc)
