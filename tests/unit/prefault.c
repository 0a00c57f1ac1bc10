/* SPDX-License-Identifier: MIT
 *
 * Nobody comes upon a huge page that has still to be cleared: one is asked for where all of it is in the hands of who
 * touches it next, and what was purged is small again.
 */
#include "heap/prefault.h"

#include "heap/huge.h"
#include "heap/purge.h"
#include "heap/span.h"
#include "price.h"
#include "unit.h"

#define GROW_SLICES (64u << 20 >> SLICE_SHIFT)

/* Huge pages asked for and not touched since, by number from the region's start; and what was told to be small. */
static bool asked[1024];
static unsigned asked_total, pending, unasked;
static uint32_t taken[6 * GROW_SLICES];
static unsigned taken_count;

static unsigned page_of(const void *address)
{
    size_t page = slice_of(address) / HUGE_PAGE_SLICES;
    EXPECT(page < ARRAY_LEN(asked));
    return (unsigned)page;
}

bool __real_os_advise_huge(void *address, size_t size);
bool __wrap_os_advise_huge(void *address, size_t size);
bool __wrap_os_advise_huge(void *address, size_t size)
{
    const bool result = __real_os_advise_huge(address, size);
    EXPECT_EQ(size, HUGE_PAGE_BYTES);
    EXPECT_EQ((uintptr_t)address % HUGE_PAGE_BYTES, 0);
    EXPECT_EQ(pending++, 0);
    asked[page_of(address)] = true;
    asked_total++;
    /* Nothing of it is free: who takes what is free does not meet it. */
    for (uint32_t at = slice_of(address), end = at + HUGE_PAGE_SLICES; at < end; at++)
        EXPECT(slice_at(at)->kind == slice_unknown);
    return result;
}

bool __real_os_advise_small(void *address, size_t size);
bool __wrap_os_advise_small(void *address, size_t size);
bool __wrap_os_advise_small(void *address, size_t size)
{
    const bool result = __real_os_advise_small(address, size);
    for (size_t at = 0; at < size; at += HUGE_PAGE_BYTES)
        if (asked[page_of((char *)address + at)]) {
            asked[page_of((char *)address + at)] = false;
            unasked++;
        }
    return result;
}

void __real_os_touch(void *page);
void __wrap_os_touch(void *page);
void __wrap_os_touch(void *page)
{
    if (region_contains(page) && asked[page_of(page)])
        pending = 0;
    __real_os_touch(page);
}

size_t __wrap_os_resident_peak_bytes(void);
size_t __wrap_os_resident_peak_bytes(void)
{
    return SIZE_MAX;
}

/* Superblocks of one to so many slices; how many huge pages are asked for. */
static unsigned grow(unsigned slices_most)
{
    unsigned before = asked_total;
    for (unsigned slices = 0, n = 1; slices < GROW_SLICES; slices += n) {
        uint32_t first;
        n = 1 + slices % slices_most;
        EXPECT(span_take(span_dense, n, 1, &first));
        EXPECT_EQ(pending, 0);
        for (uint32_t at = first; at < first + n; at++) {
            EXPECT(taken_count < ARRAY_LEN(taken));
            *(volatile char *)slice_address(at) = 1;
            taken[taken_count++] = at;
        }
    }
    return asked_total - before;
}

static void give_all_back(void)
{
    bool changed = false;
    while (taken_count > 0)
        span_give(taken[--taken_count], 1);
    span_purge(purge_force, 0, &changed);
}

/* What was purged in parts the system keeps in small pages. */
static void expect_unasked(void)
{
    unsigned split = 0;
    for (unsigned i = 0; i < ARRAY_LEN(asked); i++)
        if (asked[i]) {
            EXPECT_MSG(huge_was_split(i * HUGE_PAGE_SLICES), "page %u was purged, and would be huge again", i);
            split++;
        }
    EXPECT_EQ(unasked, asked_total - split);
    EXPECT(split <= 4);
}

/* The pages of a growing heap. */
#define ALL_PAGES (GROW_SLICES / HUGE_PAGE_SLICES)

int main(void)
{
    unit_print_mode();
    unit_watchdog(60);
    if (!region_fits_huge_pages())
        SKIP("huge pages of %zu bytes are not asked for", os_huge_page_bytes());
    grow(1); /* the region is large enough */
    atomic_store(&manager_is_missing, false);
    EXPECT_EQ(grow(1), 0); /* the manager has them prefaulted, or they are small */
    EXPECT_EQ(grow(7), 0);
    prefault_pool_rest(os_now_ns() + 3600000000000ull); /* it cannot at present */
    EXPECT(grow(1) >= ALL_PAGES - 2);
    atomic_store(&memory_is_short, true);
    give_all_back();
    EXPECT_EQ(grow(1), 0);
    atomic_store(&memory_is_short, false);
    prefault_pool_rest(0);
    give_all_back();
    expect_unasked();

    atomic_store(&manager_is_missing, true);
    price_is_fair = false;
    EXPECT_EQ(grow(3), 0);
    price_is_fair = true;
    give_all_back();
    EXPECT(grow(15) >= ALL_PAGES / 2); /* in memory used before */
    give_all_back();
    expect_unasked();
    return 0;
}
