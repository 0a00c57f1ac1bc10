/* SPDX-License-Identifier: MIT */
#include "heap/emergency.h"

#include "heap/span.h"

#define EMERGENCY_SLICES 4u

/* Before each block.  The mark is made of the block's address, so that what programs write is not taken for one. */
struct header {
    size_t bytes;
    _Atomic uintptr_t mark;
};
#define HEADER_BYTES sizeof(struct header)
_Static_assert(HEADER_BYTES == BLOCK_ALIGNMENT, "blocks are aligned");
#define MARK_LIVE 0x6c1fe5a92d37b481ul
#define MARK_FREED 0x93d05b7ee84a167ful

static char *area;
static _Atomic uint64_t state; /* {blocks out << 32 | bytes used} */

bool emergency_start(void)
{
    uint32_t first;
    if (!span_take(span_dense, EMERGENCY_SLICES, 1, &first))
        return false;
    for (uint32_t i = 0; i < EMERGENCY_SLICES; i++)
        descriptor_of_slice(first + i)->kind = slice_emergency;
    area = slice_address(first);
    return true;
}

static struct header *header_of(char *block)
{
    return (struct header *)(block - HEADER_BYTES);
}

void *emergency_take(size_t size, size_t alignment)
{
    const size_t limit = EMERGENCY_SLICES * SLICE_BYTES;
    alignment = max_size(alignment, BLOCK_ALIGNMENT);
    if (area == NULL || size > limit || alignment > SLICE_BYTES)
        return NULL;
    uint64_t old = atomic_load(&state), new;
    size_t start;
    do {
        start = align_up((uint32_t)old + HEADER_BYTES, alignment);
        size_t end = align_up(start + max_size(size, 1), BLOCK_ALIGNMENT);
        if (end > limit)
            return NULL;
        new = ((old >> 32) + 1) << 32 | end;
    } while (!atomic_compare_exchange_weak(&state, &old, new));
    struct header *header = header_of(area + start);
    header->bytes = align_up(max_size(size, 1), BLOCK_ALIGNMENT);
    atomic_store_explicit(&header->mark, (uintptr_t)(area + start) ^ MARK_LIVE, memory_order_relaxed);
    return area + start;
}

bool emergency_give(void *p)
{
    uintptr_t live = (uintptr_t)p ^ MARK_LIVE;
    if (!atomic_compare_exchange_strong(&header_of(p)->mark, &live, (uintptr_t)p ^ MARK_FREED))
        return false;
    uint64_t old = atomic_load(&state), new;
    do
        new = (old >> 32) == 1 ? 0 : old - (1ull << 32);
    while (!atomic_compare_exchange_weak(&state, &old, new));
    return true;
}

static uintptr_t mark_of(const void *p)
{
    size_t offset = (size_t)((const char *)p - area);
    return offset < HEADER_BYTES || offset % BLOCK_ALIGNMENT != 0 ? 0 : header_of((char *)p)->mark ^ (uintptr_t)p;
}

size_t emergency_bytes(const void *p)
{
    return mark_of(p) == MARK_LIVE ? header_of((char *)p)->bytes : 0;
}

bool emergency_was_freed(const void *p)
{
    return mark_of(p) == MARK_FREED;
}
