/* SPDX-License-Identifier: MIT
 *
 * realloc and calloc.
 */
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "core/core.h"
#include "heap/clear.h"
#include "heap/grown.h"
#include "heap/large.h"

static void *replace(void *p, size_t bytes, void *by)
{
    memcpy(by, p, bytes);
    sutler_free(p);
    return by;
}

/* A span becomes a mapping, which grows without being copied; if it `suits`, its pages are moved.  NULL without
 * memory. */
static void *become_mapping(void *p, size_t bytes, size_t size, bool suits)
{
    if (!slow_enter())
        return NULL;
    void *moved = suits ? large_move_out(p, size) : NULL;
    void *block = moved == NULL ? large_take_mapping(size) : NULL;
    slow_leave_and_hint(slow_gave);
    return block != NULL ? replace(p, bytes, block) : moved;
}

/* Copies to another block, longer or shorter. */
static NOINLINE void *move(void *p, size_t bytes, size_t size)
{
    bool shrinks = size <= bytes;
    int error = shrinks ? errno : 0;
    void *block = sutler_malloc(size);
    if (unlikely(block == NULL)) {
        if (!shrinks)
            return NULL;
        errno = error; /* it stays where it is */
        return p;
    }
    return replace(p, min_size(bytes, size), block);
}

/* Moves `bytes` of the block to another one of `size`: so strings and arrays grow, piece by piece.  NULL without
 * memory: the block is as it was. */
static NOINLINE void *copy(void *p, size_t bytes, size_t size)
{
    ASSERT(bytes <= size);
    void *block = sutler_malloc(size);
    return likely(block != NULL) ? replace(p, bytes, block) : NULL;
}

/* One that doubles is copied a few times only.  Copied to where there are pages, or huge ones, that is cheaper than the
 * small pages a mapping would have to be filled with; but it leaves as much behind. */
#define LEAPED_BYTES_MIN ((size_t)8 << 20)

/* A span that grows becomes a mapping where that suits it.  Else one that grows in small steps gets room, so that it is
 * not copied at each.  NULL if it is to be copied as others are. */
static void *grow_span(void *p, size_t bytes, size_t size)
{
    const bool is_step = size - bytes < bytes / 5;
    const size_t roomy = is_step ? bytes + bytes / 4 : size;
    const bool suits = size >= (is_step ? GROWN_BYTES_MIN : LEAPED_BYTES_MIN) && grown_suits_mapping(roomy);
    void *mapping = suits || size >= MAPPING_BYTES_MIN ? become_mapping(p, bytes, size, suits) : NULL;
    return mapping != NULL || !is_step ? mapping : move(p, bytes, roomy);
}

/* For a large block that could not be resized where it is.  If it is a mapping, there is no memory, and a copy would
 * take even more.  A span is copied.  If that fails, it may grow by what lies around it. */
static COLD void *resize_hard(void *p, struct block old, size_t size)
{
    int error = errno;
    bool grows = size > old.bytes;
    void *moved = grows && old.kind == block_mapping ? resize_last_resort(p, size) : NULL;
    if (grows && old.kind == block_large)
        moved = grow_span(p, old.bytes, size);
    if (moved == NULL)
        moved = move(p, old.bytes, size);
    if (moved == NULL && old.kind == block_large)
        moved = resize_last_resort(p, size);
    if (moved != NULL)
        errno = error;
    return moved;
}

/* To copy so much takes a millisecond or two. */
#define COPIED_BYTES_MAX ((size_t)8 << 20)

/* A span of which less than half is to stay, as of a buffer that is cut to what it holds, is copied: then it is whole
 * for whoever wants one as long.  Cut where it is, each such buffer would leave a piece that is too short for the next
 * one.  But if much is to stay, copying takes long.  NULL without memory: it is to be cut where it is. */
static void *move_to_shorter(void *p, size_t size)
{
    int error = errno;
    void *shorter = copy(p, size, size);
    if (unlikely(shorter == NULL))
        errno = error;
    return shorter;
}

static bool mapping_fits(const void *p, size_t size)
{
    if (!slow_enter())
        return true;
    const bool fits = mapping_stays(p, size);
    slow_leave();
    return fits;
}

/* It fits, and if it is large it does not leave more than an eighth unused: else it is cut where it is, down to the
 * largest class. */
static bool stays(const void *p, struct block old, size_t size)
{
    if (old.kind == block_mapping && size > CLASS_BYTES_MAX && size <= old.bytes)
        return mapping_fits(p, size); /* half of it may be room */
    return block_fits(old.bytes, size) &&
           (old.kind != block_large || size <= CLASS_BYTES_MAX || old.bytes - size <= old.bytes / 8);
}

/* What a quick look does not find; and size 0. */
static NOINLINE void *resize(void *p, size_t size)
{
    if (p == NULL)
        return sutler_malloc(size);
    if (size == 0) { /* as glibc: frees, and says so */
        sutler_free(p);
        return NULL;
    }
    struct block old = block_find(p);
    if (unlikely(!block_is_valid(old.kind))) {
        report_block("realloc", p, old);
        errno = EINVAL;
        return NULL;
    }
    if (unlikely(old.bytes == BYTES_UNKNOWN)) {
        errno = ENOMEM;
        return NULL;
    }
    if (stays(p, old, size))
        return p;
    const bool is_little = size < min_size(old.bytes, COPIED_BYTES_MAX) && !block_fits(old.bytes, size);
    void *shorter = old.kind == block_large && is_little ? move_to_shorter(p, size) : NULL;
    if (shorter != NULL)
        return shorter;
    if ((old.kind == block_large || old.kind == block_mapping) && size > CLASS_BYTES_MAX && size <= PTRDIFF_MAX &&
        slow_enter()) {
        void *moved = large_resize(p, size, false);
        slow_leave_and_hint(slow_gave);
        return moved != NULL ? moved : resize_hard(p, old, size);
    }
    return move(p, old.bytes, size);
}

void *sutler_realloc(void *p, size_t size)
{
    size_t bytes = block_bytes_quick(p);
    if (unlikely(bytes == 0 || size == 0))
        return resize(p, size);
    if (block_fits(bytes, size))
        return p;
    slow_if_unmanaged();
    return bytes < size ? copy(p, bytes, size) : move(p, bytes, size);
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

EXPORT void *calloc(size_t count, size_t size)
{
    size_t bytes;
    if (unlikely(__builtin_mul_overflow(count, size, &bytes))) {
        errno = ENOMEM;
        return NULL;
    }
    slow_if_unmanaged();
    if (likely(bytes <= CLEARED_BYTES_MAX)) {
        void *block = sutler_malloc(bytes);
        return likely(block != NULL) ? memset(block, 0, bytes) : NULL;
    }
    bool zero;
    void *block = allocate_or_enomem(bytes, BLOCK_ALIGNMENT, &zero);
    return block == NULL || zero ? block : large_clear(block, bytes);
}

/* glibc's other names (aligned.c). */
ALSO(__libc_realloc, realloc)
ALSO(__libc_calloc, calloc)
