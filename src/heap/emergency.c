/* SPDX-License-Identifier: MIT */
#include "heap/emergency.h"

#include "heap/span.h"

#define EMERGENCY_SLICES 4u
#define HEADER_BYTES 16u /* before each block: its size */

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
    *(size_t *)(area + start - HEADER_BYTES) = align_up(max_size(size, 1), BLOCK_ALIGNMENT);
    return area + start;
}

void emergency_give(void *p)
{
    (void)p;
    uint64_t old = atomic_load(&state), new;
    do
        new = (old >> 32) == 1 ? 0 : old - (1ull << 32);
    while (!atomic_compare_exchange_weak(&state, &old, new));
}

size_t emergency_bytes(const void *p)
{
    return *(const size_t *)((const char *)p - HEADER_BYTES);
}
