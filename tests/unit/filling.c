/* SPDX-License-Identifier: MIT
 *
 * Huge pages are asked for a large block if the last one looked at was full: one that was freed, or grew.
 */
#include "heap/filling.h"

#include "heap/large.h"
#include "heap/window.h"
#include "options/options.h"
#include "os/os.h"
#include "unit.h"

#define SPAN ((size_t)6 << 20)
#define MAPPING ((size_t)24 << 20)

static size_t advised;

void __real_os_advise_huge(void *address, size_t size);
void __wrap_os_advise_huge(void *address, size_t size);
void __wrap_os_advise_huge(void *address, size_t size)
{
    advised += size;
    __real_os_advise_huge(address, size);
}

/* One that holds no pages yet, though a span may have room for it. */
static char *take_fresh(size_t size)
{
    bool zero = false;
    char *block = NULL;
    advised = 0;
    while (!zero) { /* those of before are not freed, so they are not had again */
        block = large_take(size, 16, &zero);
        EXPECT(block != NULL);
    }
    return block;
}

static void give(char *block)
{
    EXPECT(window_contains(block) ? large_span_give(block) : mapping_give(block));
}

static void fill(char *block, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += os_page_bytes)
        block[i] = 1;
}

/* Fills the first `bytes` of a block of `size` and frees it: is another expected to be filled? */
static bool after_filling(size_t size, size_t bytes)
{
    char *block = take_fresh(size);
    fill(block, bytes);
    give(block);
    return filling_expected(size);
}

static void the_last_one_counts(size_t size)
{
    EXPECT(!after_filling(size, 0));
    take_fresh(size);
    EXPECT_EQ(advised, 0);
    EXPECT(after_filling(size, size));
    EXPECT(!after_filling(size, size / 2));
    EXPECT(!after_filling(size, os_page_bytes));
    EXPECT(after_filling(size, size));
    EXPECT(!filling_expected(HUGE_PAGE_BYTES - 1));
    option_value[option_huge_pages] = huge_pages_off; /* it can be chosen at the start only */
    EXPECT(!filling_expected(size));
    option_value[option_huge_pages] = huge_pages_auto;
    EXPECT(filling_expected(size));
}

static void huge_pages_are_asked_for(void)
{
    EXPECT(after_filling(SPAN, SPAN));
    take_fresh(MAPPING);
    EXPECT_EQ(advised, MAPPING);
    size_t opened = 0;
    for (int i = 0; i < 4; i++) { /* the first may come from what was opened before */
        take_fresh(SPAN);
        opened += advised;
    }
    EXPECT_MSG(opened >= 3 * SPAN, "%zu", opened);
    EXPECT(!after_filling(SPAN, 0));
    take_fresh(MAPPING);
    EXPECT_EQ(advised, 0);
}

/* Of the last slice the program may have asked for the beginning only. */
static void the_last_slice_may_be_more(void)
{
    size_t size = SPAN - SLICE_BYTES / 2;
    EXPECT(after_filling(size, size));
}

static void the_last_bytes_are_not_all(void)
{
    char *block = take_fresh(MAPPING);
    fill(block + MAPPING / 2, MAPPING / 2);
    give(block);
    EXPECT(!filling_expected(MAPPING));
}

/* Small blocks neither tell nor ask. */
static void small_ones_do_not_count(void)
{
    EXPECT(!after_filling(SPAN, 0));
    EXPECT(!after_filling(HUGE_PAGE_BYTES / 2, HUGE_PAGE_BYTES / 2));
    EXPECT(!filling_expected(SPAN));
}

static void growing_because_full(void)
{
    char *full = take_fresh(MAPPING), *empty = take_fresh(MAPPING);
    fill(full, MAPPING);
    advised = 0;
    empty = large_resize(empty, 2 * MAPPING + os_page_bytes);
    EXPECT(empty != NULL && advised == 0);
    EXPECT_EQ(mapping_bytes(empty, true), 2 * MAPPING + os_page_bytes);
    full = large_resize(full, 2 * MAPPING + os_page_bytes);
    EXPECT(full != NULL && advised == MAPPING);
    EXPECT_EQ(mapping_bytes(full, true), 2 * MAPPING + HUGE_PAGE_BYTES);
    for (size_t i = 0; i < MAPPING; i += os_page_bytes)
        EXPECT_EQ(full[i], 1);
    EXPECT_EQ(full[2 * MAPPING], 0);
    fill(full, 2 * MAPPING + HUGE_PAGE_BYTES);
    advised = 0;
    full = large_resize(full, MAPPING + os_page_bytes); /* to shrink tells nothing */
    EXPECT(full != NULL && advised == 0);
    EXPECT_EQ(mapping_bytes(full, true), MAPPING + os_page_bytes);
}

int main(void)
{
    unit_print_mode();
    unit_watchdog(60);
    free(malloc(1));
    the_last_slice_may_be_more(); /* before there are huge pages */
    small_ones_do_not_count();
    the_last_bytes_are_not_all();
    the_last_one_counts(SPAN);
    the_last_one_counts(MAPPING);
    huge_pages_are_asked_for();
    growing_because_full();
    return 0;
}
