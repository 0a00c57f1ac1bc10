/* SPDX-License-Identifier: MIT
 *
 * Huge pages are asked for a large block if the last one looked at was full: one that was freed, grew, or was followed.
 */
#include "heap/huge_policy.h"

#include "heap/arena.h"
#include "heap/large.h"
#include "heap/region.h"
#include "options/options.h"
#include "os/os.h"
#include "unit.h"

#define SPAN    ((size_t)6 << 20)
#define MAPPING ((size_t)24 << 20)

static size_t advised;
static bool refuse_whole; /* a remap to a number of whole huge pages */

void *__real_os_remap(void *address, size_t old_size, size_t new_size, bool may_move);
void *__wrap_os_remap(void *address, size_t old_size, size_t new_size, bool may_move);
void *__wrap_os_remap(void *address, size_t old_size, size_t new_size, bool may_move)
{
    bool refused = refuse_whole && new_size % HUGE_PAGE_BYTES == 0;
    return refused ? NULL : __real_os_remap(address, old_size, new_size, may_move);
}

bool __real_os_advise_huge(void *address, size_t size);
bool __wrap_os_advise_huge(void *address, size_t size);
bool __wrap_os_advise_huge(void *address, size_t size)
{
    advised += size;
    return __real_os_advise_huge(address, size);
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
    EXPECT(region_contains(block) ? large_span_give(block) : mapping_give(block));
}

static void fill(char *block, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += os_page_bytes)
        block[i] = 1;
}

/* Fills the first `bytes` of a block of `size` and frees it: is another expected to be filled? */
static bool asks_after(size_t size, size_t bytes)
{
    char *block = take_fresh(size);
    fill(block, bytes);
    give(block);
    return huge_policy_asks(size);
}

static void the_last_one_counts(size_t size)
{
    EXPECT(!asks_after(size, 0));
    take_fresh(size);
    EXPECT_EQ(advised, 0);
    EXPECT(asks_after(size, size));
    EXPECT(!asks_after(size, size / 2));
    EXPECT(!asks_after(size, os_page_bytes));
    EXPECT(asks_after(size, size));
    EXPECT(!huge_policy_asks(HUGE_POLICY_BYTES_MIN - 1));
    option_value[option_huge_pages] = huge_pages_off; /* it can be chosen at the start only */
    EXPECT(!huge_policy_asks(size));
    option_value[option_huge_pages] = huge_pages_auto;
    EXPECT(huge_policy_asks(size));
    EXPECT(!asks_after(size, size / 2));
    option_value[option_huge_pages] = huge_pages_on;
    EXPECT(huge_policy_asks(size));
    option_value[option_huge_pages] = huge_pages_auto;
    EXPECT(!huge_policy_asks(size));
    EXPECT(asks_after(size, size));
}

static void huge_pages_are_asked_for(void)
{
    EXPECT(asks_after(SPAN, SPAN));
    take_fresh(MAPPING);
    EXPECT_EQ(advised, MAPPING);
    size_t opened = 0;
    for (int i = 0; i < 4; i++) { /* the first may come from what was opened before */
        take_fresh(SPAN);
        opened += advised;
    }
    EXPECT_MSG(opened >= 3 * SPAN, "%zu", opened);
    EXPECT(!asks_after(SPAN, 0));
    take_fresh(MAPPING);
    EXPECT_EQ(advised, 0);
}

/* Of the last slice the program may have asked for the beginning only. */
static void the_last_slice_may_be_more(void)
{
    size_t size = SPAN - SLICE_BYTES / 2;
    EXPECT(asks_after(size, size));
}

static void the_last_bytes_are_not_all(void)
{
    char *block = take_fresh(MAPPING);
    fill(block + MAPPING / 2, MAPPING / 2);
    give(block);
    EXPECT(!huge_policy_asks(MAPPING));
}

/* Small blocks neither tell nor ask. */
static void small_ones_do_not_count(void)
{
    EXPECT(!asks_after(SPAN, 0));
    size_t small = HUGE_POLICY_BYTES_MIN - SLICE_BYTES;
    EXPECT(!asks_after(small, small));
    EXPECT(!huge_policy_asks(SPAN));
    fill(take_fresh(small), small);
    take_fresh(SPAN);
    EXPECT(!huge_policy_asks(SPAN));
    EXPECT(asks_after(HUGE_POLICY_BYTES_MIN, HUGE_POLICY_BYTES_MIN));
}

/* Blocks that are kept tell when the next is taken; one not full yet tells nothing, it may still be filled. */
static void followed_when_full(size_t size)
{
    EXPECT(!asks_after(SPAN, 0));
    char *block = take_fresh(size);
    fill(block, size / 2);
    block = take_fresh(size);
    EXPECT(!huge_policy_asks(size));
    fill(block, size);
    EXPECT(!huge_policy_asks(size)); /* nobody looks before the next one */
    take_fresh(size);
    EXPECT(huge_policy_asks(size));
    EXPECT_MSG(advised >= size, "%zu", advised);
    fill(take_fresh(size), size);
    take_fresh(size);
    EXPECT(huge_policy_asks(size));
    EXPECT(!asks_after(size, 0));
}

/* One full block does not speak for all that are taken and kept after it. */
static void kept_ones_tell_nothing(size_t size)
{
    size_t sum = 0;
    EXPECT(asks_after(SPAN, SPAN));
    for (int i = 0; i < 100; i++) {
        take_fresh(size)[0] = 1;
        sum += advised;
    }
    EXPECT_MSG(sum >= SPAN && sum <= (128ul << 20) + size + 100 * HUGE_PAGE_BYTES / 2, "%zu", sum);
    EXPECT(!huge_policy_asks(size));
    EXPECT(asks_after(size, size));
}

/* A page here and there of a block on huge pages makes all of it resident, wherever one looks. */
static void few_touches_tell_nothing(size_t size, bool is_freed)
{
    size_t sum = 0;
    EXPECT(!asks_after(SPAN, 0));
    EXPECT(asks_after(SPAN, SPAN));
    for (int i = 0; i < 60; i++) {
        char *block = take_fresh(size);
        sum += advised;
        for (size_t at = 0; at < size; at += HUGE_PAGE_BYTES)
            block[at + 3 * os_page_bytes] = 1; /* where nobody looks on small pages */
        block[size - 1] = 1;
        if (is_freed && i % 2 == 0)
            give(block);
    }
    EXPECT_MSG(sum <= (128ul << 20) + size + 60 * HUGE_PAGE_BYTES / 2, "%zu", sum);
    EXPECT(!huge_policy_asks(size));
}

/* But who fills block after block has huge pages for all of them. */
static void what_is_filled_on_huge_pages_tells(size_t size, bool is_freed)
{
    EXPECT(!asks_after(SPAN, 0));
    EXPECT(asks_after(SPAN, SPAN));
    for (int i = 0; i < 20; i++) {
        char *block = take_fresh(size);
        fill(block, size);
        if (is_freed)
            give(block);
        EXPECT(i == 0 || huge_policy_asks(size));
    }
    EXPECT(!asks_after(size, size / 2));
}

/* Whose pages these are, when the next is taken, is not known any more. */
static void followed_when_freed(void)
{
    EXPECT(!asks_after(SPAN, 0));
    char *block = take_fresh(MAPPING);
    give(block);
    fill(block, MAPPING);
    take_fresh(MAPPING);
    EXPECT(!huge_policy_asks(MAPPING));
}

static void growing_because_full(void)
{
    char *full = take_fresh(MAPPING), *empty = take_fresh(MAPPING);
    fill(full, MAPPING);
    advised = 0;
    empty = large_resize(empty, 2 * MAPPING + os_page_bytes, false);
    EXPECT(empty != NULL && advised == 0);
    EXPECT_EQ(mapping_bytes(empty, true), 2 * MAPPING + HUGE_PAGE_BYTES);
    full = large_resize(full, 2 * MAPPING + os_page_bytes, false);
    EXPECT(full != NULL && advised == MAPPING);
    EXPECT_EQ(mapping_bytes(full, true), 2 * MAPPING + HUGE_PAGE_BYTES);
    for (size_t i = 0; i < MAPPING; i += os_page_bytes)
        EXPECT_EQ(full[i], 1);
    EXPECT_EQ(full[2 * MAPPING], 0);
    fill(full, 2 * MAPPING + os_page_bytes); /* what was asked for */
    advised = 0;
    full = large_resize(full, 3 * MAPPING, false);
    EXPECT(full != NULL && advised == 2 * MAPPING + HUGE_PAGE_BYTES);
    fill(full, 3 * MAPPING);
    refuse_whole = true;
    full = large_resize(full, 3 * MAPPING + os_page_bytes, false);
    EXPECT(full != NULL);
    EXPECT_EQ(mapping_bytes(full, true), 3 * MAPPING + os_page_bytes);
    refuse_whole = false;
    advised = 0;
    full = large_resize(full, MAPPING + os_page_bytes, false); /* to shrink tells nothing */
    EXPECT(full != NULL && advised == 0);
    EXPECT_EQ(mapping_bytes(full, true), MAPPING + os_page_bytes);
}

/* The pages of a block used again may be there from before. */
static void used_again_does_not_count(void)
{
    char *block = take_fresh(MAPPING);
    bool zero;
    fill(block, MAPPING);
    give(block);
    EXPECT(large_take(MAPPING, 16, &zero) == block && !zero);
    EXPECT(!asks_after(SPAN, 0));
    give(block);
    EXPECT(!huge_policy_asks(MAPPING));
    EXPECT(large_take(MAPPING, 16, &zero) == block && !zero);
    advised = 0;
    EXPECT((block = large_resize(block, 2 * MAPPING, false)) != NULL && advised == 0);
    fill(block, 2 * MAPPING);
    give(block);
    EXPECT(!huge_policy_asks(MAPPING));
}

/* Nor does one that was lengthened by what was used before. */
static void lengthened_by_used_does_not_count(void)
{
    char *empty = take_fresh(SPAN), *block = take_fresh(SPAN), *next = take_fresh(SPAN);
    for (int i = 0; next != block + SPAN; i++) {
        EXPECT(i < 20);
        block = next;
        next = take_fresh(SPAN);
    }
    fill(block, SPAN);
    fill(next, SPAN);
    give(next);
    give(empty);
    EXPECT(!huge_policy_asks(SPAN));
    EXPECT(large_resize(block, 2 * SPAN, false) == block);
    give(block);
    EXPECT(!huge_policy_asks(SPAN));
}

/* A block of SPAN bytes that ends where the arena has not been used yet. */
static char *take_last(void)
{
    char *block = take_fresh(SPAN);
    while (slice_of(block + SPAN) != arena[span_large].fresh_first)
        block = take_fresh(SPAN);
    return block;
}

static bool holds(const char *block, size_t bytes, const char *p)
{
    return p >= block && p < block + bytes;
}

/* Where blocks are filled a longer one begins with what a shorter one left at the arena's end; huge pages are asked for
 * behind that. */
static void goes_on_where_pages_are(void)
{
    const size_t longer = SPAN + SPAN / 2;
    bool zero;
    take_fresh(longer); /* no free span is as long */
    char *last = take_last();
    give(last);
    EXPECT(!huge_policy_asks(longer)); /* it was not filled */
    char *block = large_take(longer, 16, &zero);
    EXPECT(zero && !holds(block, longer, last));

    fill(last = take_last(), SPAN);
    give(last);
    advised = 0;
    block = large_take(longer, 16, &zero);
    EXPECT(!zero && holds(block, longer, last) && holds(block, longer, last + SPAN));
    EXPECT(last[0] == 1 && last[SPAN] == 0 && block[longer - 1] == 0);
    EXPECT_MSG(advised > 0 && advised <= longer - SPAN + HUGE_PAGE_BYTES, "%zu", advised);
}

/* Where the region goes on elsewhere, so does the longer one. */
static void goes_on_elsewhere(void)
{
    struct arena *dense = &arena[span_dense], *large = &arena[span_large];
    const size_t left = 4 * SLICE_BYTES, longer = SPAN + left + SLICE_BYTES;
    lock_take(&span_lock);
    EXPECT(arena_open(large, slices_for(SPAN + left)));
    large->fresh_first = large->fresh_end - (uint32_t)slices_for(SPAN + left); /* what lies before is lost */
    EXPECT(arena_open(dense, dense->fresh_end - dense->fresh_first + 1));
    lock_release(&span_lock);
    char *last = take_last();
    EXPECT_EQ((size_t)(large->fresh_end - large->fresh_first) << SLICE_SHIFT, left);
    fill(last, SPAN);
    give(last);
    bool zero;
    char *block = large_take(longer, 16, &zero);
    EXPECT(zero && !holds(block, longer, last));
    fill(block, longer);
    EXPECT(large_take(SPAN + left, 16, &zero) == last); /* the end of before is its neighbour now */
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
    followed_when_full(SPAN);
    followed_when_full(MAPPING);
    kept_ones_tell_nothing(SPAN);
    kept_ones_tell_nothing(MAPPING);
    few_touches_tell_nothing(2 * SPAN, false);
    few_touches_tell_nothing(2 * SPAN, true);
    few_touches_tell_nothing(MAPPING, false);
    few_touches_tell_nothing(MAPPING, true);
    what_is_filled_on_huge_pages_tells(MAPPING, true);
    what_is_filled_on_huge_pages_tells(SPAN, false);
    followed_when_freed();
    growing_because_full();
    used_again_does_not_count();
    lengthened_by_used_does_not_count();
    goes_on_where_pages_are();
    goes_on_elsewhere();
    return 0;
}
