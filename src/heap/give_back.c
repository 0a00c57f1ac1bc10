/* SPDX-License-Identifier: MIT */
#include "heap/give_back.h"

#include "base/bits.h"
#include "heap/huge.h"
#include "heap/region.h"

void give_back_flush(struct give_back *pages)
{
    if (pages->count > 0 && !os_purge_ranges(pages->range, pages->count))
        pages->refused = true;
    else
        pages->bytes += pages->pending_bytes;
    pages->pending_bytes = 0;
    pages->count = 0;
    pages->split = 0;
}

static void split_once(struct give_back *pages, void *part)
{
    uintptr_t page = align_down((uintptr_t)part, HUGE_PAGE_BYTES);
    if (page != pages->split)
        huge_split(part);
    pages->split = page;
}

void give_back_add(struct give_back *pages, void *address, size_t bytes)
{
    uintptr_t start = (uintptr_t)address, end = start + bytes;
    void *part[2];
    for (unsigned count = huge_parts(address, bytes, part), i = 0; i < count; i++)
        split_once(pages, part[i]);
    huge_note_whole(align_up(start, HUGE_PAGE_BYTES), align_down(end, HUGE_PAGE_BYTES));
    if (pages->count == OS_RANGES_MAX)
        give_back_flush(pages);
    pages->range[pages->count++] = (struct os_range){address, bytes};
    pages->pending_bytes += bytes;
}
