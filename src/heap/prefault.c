/* SPDX-License-Identifier: MIT */
#include "heap/prefault.h"

#include "heap/arena.h"
#include "heap/huge.h"
#include "heap/huge_price.h"
#include "os/os.h"

/* All of a huge page is held by the caller.  Asks for it; whether it came. */
static bool bring_huge(char *page)
{
    unsigned char there[HUGE_PAGE_BYTES / OS_PAGE_BYTES_MIN];
    uint64_t start_us = huge_price_clock_us();
    if (!huge_ask(slice_of(page)))
        return false;
    os_touch(page);
    uint64_t used_us = huge_price_clock_us() - start_us;
    bool came = !os_find_resident(page, HUGE_PAGE_BYTES, there) || there[HUGE_PAGE_BYTES / os_page_bytes - 1] != 0;
    if (came)
        huge_price_note_huge(used_us, os_now_ns());
    else
        huge_price_note_refused(os_now_ns());
    return came;
}

static void bring_small(char *start, size_t bytes)
{
    uint64_t start_us = huge_price_clock_us();
    for (char *page = start; page < start + bytes; page += os_page_bytes)
        os_touch(page);
    huge_price_note_small(huge_price_clock_us() - start_us, bytes);
}

void prefault_learn_price(void)
{
    while (!huge_price_is_known()) {
        char *pages = os_map(SLICE_BYTES);
        if (pages == NULL)
            return;
        os_advise_small(pages, SLICE_BYTES);
        bring_small(pages, SLICE_BYTES);
        os_unmap(pages, SLICE_BYTES);
    }
}

void prefault_piece(const struct prefault_piece *piece)
{
    if (!piece->is_huge || !bring_huge(piece->address))
        bring_small(piece->address, piece->bytes);
    prefault_pool_hand_over(piece, true);
}

void prefault_own(uint32_t first, size_t slices)
{
    struct prefault_piece rest;
    uint32_t page = (uint32_t)align_up(first, HUGE_PAGE_SLICES);
    if (likely(prefault_pool_is_served()) || first < region_huge_from())
        return;
    if (unlikely(!huge_price_is_known()) && slice_at(first)->content != content_used)
        bring_small(slice_address(first), SLICE_BYTES);
    else if (page < first + slices && huge_price_is_fair(os_now_ns()) &&
             prefault_pool_take_rest(first, slices, page, &rest))
        prefault_pool_hand_over(&rest, bring_huge(slice_address(page)));
}
