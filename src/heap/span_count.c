/* SPDX-License-Identifier: MIT */
#include "heap/allowance.h"
#include "heap/arena.h"
#include "heap/prefault_pool.h"

size_t span_count_taken(uint32_t first, size_t slices)
{
    ASSERT(lock_is_mine(&span_lock));
    span_count.in_use_bytes += slices << SLICE_SHIFT;
    const size_t dirty_bytes = slices_holding(first, slices, content_used) << SLICE_SHIFT;
    span_count.dirty_bytes -= dirty_bytes;
    prefault_pool_count_taken(first, slices);
    return (slices << SLICE_SHIFT) - dirty_bytes;
}

size_t span_in_use_bytes(void)
{
    return span_count.in_use_bytes;
}

size_t span_dirty_bytes(void)
{
    return span_count.dirty_bytes;
}

void span_note_purged(size_t bytes)
{
    __atomic_fetch_add(&span_count.purged_bytes, bytes, __ATOMIC_RELAXED);
    allowance_return(bytes);
}

void span_forget_pages(uint32_t first, size_t slices, struct span_returned *sum)
{
    sum->dirty_bytes += slices_holding(first, slices, content_used) << SLICE_SHIFT;
    sum->prefaulted_bytes += slices_holding(first, slices, content_prefaulted) << SLICE_SHIFT;
    for (size_t i = 0; i < slices; i++)
        slice_purged(slice_at(first + (uint32_t)i));
}

void span_count_returned(struct span_returned r)
{
    ASSERT(lock_is_mine(&span_lock));
    span_count.dirty_bytes -= r.dirty_bytes;
    prefault_pool_count_wasted(r.prefaulted_bytes);
    span_note_purged(r.dirty_bytes + r.prefaulted_bytes);
}
