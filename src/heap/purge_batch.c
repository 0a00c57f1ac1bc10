/* SPDX-License-Identifier: MIT */
#include "heap/purge_batch.h"

#include "base/bits.h"
#include "heap/huge.h"
#include "heap/region.h"

/* Of the batch that is being collected; in a pass. */
static struct os_range range[OS_RANGES_MAX];

void purge_batch_flush(struct purge_batch *batch)
{
    if (batch->count > 0 && !os_purge_ranges(range, batch->count))
        batch->refused = true;
    else
        batch->bytes += batch->pending_bytes;
    batch->pending_bytes = 0;
    batch->count = 0;
    batch->split = 0;
}

void purge_batch_add(struct purge_batch *batch, void *address, size_t bytes)
{
    void *part[2];
    for (unsigned count = huge_parts(address, bytes, part), i = 0; i < count; i++) {
        uintptr_t page = align_down((uintptr_t)part[i], HUGE_PAGE_BYTES);
        if (page != batch->split)
            huge_split(part[i]);
        batch->split = page;
    }
    huge_note_purged(address, bytes);
    if (batch->count == OS_RANGES_MAX)
        purge_batch_flush(batch);
    range[batch->count++] = (struct os_range){address, bytes};
    batch->pending_bytes += bytes;
}
