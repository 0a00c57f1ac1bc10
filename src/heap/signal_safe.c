/* SPDX-License-Identifier: MIT */
#include "heap/signal_safe.h"

#include "heap/span.h"

#define AREA_SLICES 4u
#define AREA_BYTES (AREA_SLICES * SLICE_BYTES)
#define AREAS_MAX 64u

/* Before each block.  The mark is made of the block's address, so that what programs write is not taken for one. */
struct header {
    size_t bytes;
    _Atomic uintptr_t mark;
};
#define HEADER_BYTES sizeof(struct header)
_Static_assert(HEADER_BYTES == BLOCK_ALIGNMENT, "blocks are aligned");
#define MARK_LIVE 0x6c1fe5a92d37b481ul
#define MARK_FREED 0x93d05b7ee84a167ful

static struct area {
    char *_Atomic start;    /* NULL: none (yet) */
    _Atomic uint64_t state; /* {blocks out << 32 | bytes used} */
} area[AREAS_MAX];
static _Atomic unsigned area_count; /* one just counted may have no start yet */

_Atomic bool signal_safe_is_low;

bool signal_safe_add_area(void)
{
    uint32_t first;
    unsigned i = atomic_load(&area_count);
    if (i == AREAS_MAX || !span_take(span_dense, AREA_SLICES, 1, &first))
        return false;
    if (!atomic_compare_exchange_strong(&area_count, &i, i + 1)) {
        span_give(first, AREA_SLICES); /* another thread was faster */
        return true;
    }
    for (uint32_t slice = 0; slice < AREA_SLICES; slice++)
        slice_become(slice_at(first + slice), slice_signal_safe);
    atomic_store(&area[i].start, slice_address(first));
    return true;
}

void signal_safe_add(void)
{
    if (atomic_exchange(&signal_safe_is_low, false))
        signal_safe_add_area();
}

static struct header *header_of(char *block)
{
    return (struct header *)(block - HEADER_BYTES);
}

/* Where in the area the block begins, as an offset; 0 if there is no room. */
static size_t take_in(struct area *a, size_t size, size_t alignment, size_t *end)
{
    uint64_t old = atomic_load(&a->state), new;
    size_t start;
    do {
        start = align_up((uint32_t)old + HEADER_BYTES, alignment);
        *end = align_up(start + max_size(size, 1), BLOCK_ALIGNMENT);
        if (*end > AREA_BYTES)
            return 0;
        new = ((old >> 32) + 1) << 32 | *end;
    } while (!atomic_compare_exchange_weak(&a->state, &old, new));
    return start;
}

void *signal_safe_take(size_t size, size_t alignment)
{
    alignment = max_size(alignment, BLOCK_ALIGNMENT);
    if (size > AREA_BYTES || alignment > SLICE_BYTES)
        return NULL;
    unsigned count = atomic_load(&area_count);
    size_t start = 0, end = AREA_BYTES;
    char *from = NULL;
    for (unsigned i = 0; i < count && start == 0; i++) {
        from = atomic_load(&area[i].start);
        start = from == NULL ? 0 : take_in(&area[i], size, alignment, &end);
        if (i + 1 == count && (start == 0 || end > AREA_BYTES / 2))
            atomic_store(&signal_safe_is_low, true);
    }
    if (start == 0)
        return NULL;
    struct header *header = header_of(from + start);
    header->bytes = align_up(max_size(size, 1), BLOCK_ALIGNMENT);
    atomic_store_explicit(&header->mark, (uintptr_t)(from + start) ^ MARK_LIVE, memory_order_relaxed);
    return from + start;
}

/* NULL if `p` lies in none. */
static struct area *area_with(const void *p)
{
    for (struct area *a = area; a < area + AREAS_MAX; a++)
        if ((uintptr_t)p - (uintptr_t)atomic_load(&a->start) < AREA_BYTES)
            return a;
    return NULL;
}

bool signal_safe_give(void *p)
{
    uintptr_t live = (uintptr_t)p ^ MARK_LIVE;
    if (!atomic_compare_exchange_strong(&header_of(p)->mark, &live, (uintptr_t)p ^ MARK_FREED))
        return false;
    struct area *a = area_with(p);
    uint64_t old = atomic_load(&a->state), new;
    do
        new = (old >> 32) == 1 ? 0 : old - (1ull << 32);
    while (!atomic_compare_exchange_weak(&a->state, &old, new));
    return true;
}

static uintptr_t mark_of(const void *p)
{
    const struct area *a = area_with(p);
    size_t offset = a == NULL ? 0 : (size_t)((const char *)p - a->start);
    return offset < HEADER_BYTES || offset % BLOCK_ALIGNMENT != 0 ? 0 : header_of((char *)p)->mark ^ (uintptr_t)p;
}

size_t signal_safe_bytes(const void *p)
{
    return mark_of(p) == MARK_LIVE ? header_of((char *)p)->bytes : 0;
}

bool signal_safe_was_freed(const void *p)
{
    return mark_of(p) == MARK_FREED;
}
