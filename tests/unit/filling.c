/* SPDX-License-Identifier: MIT
 *
 * A fresh large block is watched: huge pages are brought ahead of a program that fills it from the front, and of no
 * other.
 */
#include "heap/filling.h"

#include <pthread.h>

#include "heap/huge_policy.h"
#include "heap/huge_price.h"
#include "heap/large.h"
#include "heap/region.h"
#include "os/os.h"
#include "unit.h"

#define PAGES ((size_t)32)
#define BYTES (PAGES * HUGE_PAGE_BYTES)
#define SECOND 1000000000ull

static uint64_t now_ns;

/* Whole huge pages, none of them there. */
static char *map_block(void)
{
    char *mapped = os_map(BYTES + HUGE_PAGE_BYTES);
    EXPECT(mapped != NULL);
    char *block = (char *)align_up((uintptr_t)mapped, HUGE_PAGE_BYTES);
    os_advise_small(block, BYTES); /* whatever the system's default */
    return block;
}

static char *take(void)
{
    char *block = map_block();
    filling_note(block, BYTES);
    return block;
}

static bool is_there(char *block, size_t page)
{
    unsigned char there;
    EXPECT(os_find_resident(block + page * HUGE_PAGE_BYTES, os_page_bytes, &there));
    return there != 0;
}

static size_t count_of(char *block, size_t pages)
{
    size_t there = 0;
    for (size_t page = 0; page < pages; page++)
        there += is_there(block, page);
    return there;
}

static size_t count(char *block)
{
    return count_of(block, PAGES);
}

static void touch(char *block, size_t page)
{
    block[page * HUGE_PAGE_BYTES] = 1;
}

static void fill(char *block, size_t page)
{
    for (size_t i = 0; i < HUGE_PAGE_BYTES; i += os_page_bytes)
        block[page * HUGE_PAGE_BYTES + i] = 1;
}

static enum filling look(void)
{
    now_ns += 100000;
    return filling_look(now_ns);
}

/* Looks, and brings all that is to be brought; returns how many pieces. */
static size_t bring(void)
{
    struct prefault_piece piece;
    size_t count = 0;
    for (look(); filling_next(&piece); look(), count++) {
        EXPECT(!is_there(piece.address, 0));
        EXPECT(filling_bring(&piece));
        EXPECT(is_there(piece.address, 0));
    }
    return count;
}

static void begin(bool expects_full)
{
    filling_recover();
    if (expects_full)
        huge_policy_note_filled(BYTES);
    else { /* a block that was not filled */
        char *block = map_block();
        huge_policy_look(block, BYTES, 1, false);
    }
    EXPECT_EQ(huge_policy_expects_full(BYTES), expects_full);
    /* Small pages at a price that every huge page beats. */
    for (int i = 0; i < 20; i++)
        huge_price_note_small(1000000, HUGE_PAGE_BYTES);
    huge_price_note_huge(1, now_ns);
}

static void nothing_before_the_beginning_is_filled(void)
{
    begin(false);
    EXPECT(look() == filling_none);
    char *block = take();
    EXPECT(look() == filling_goes_on); /* it is new */
    EXPECT(look() == filling_rests);
    touch(block, 0);
    touch(block, 1);
    EXPECT_EQ(bring(), 0);
    fill(block, 0);
    EXPECT_EQ(bring(), 1);
    EXPECT(is_there(block, 2));
    EXPECT_EQ(count(block), 3);
    filling_forget(block);
    EXPECT(look() == filling_none);
}

/* At most a quarter of what it filled, or one huge page, is there that it did not fill, wherever it stops. */
static void a_quarter_ahead(void)
{
    begin(false);
    char *block = take();
    size_t brought = 0;
    for (size_t page = 0; page < PAGES; page++) {
        fill(block, page);
        brought += bring();
        EXPECT_MSG(count(block) - (page + 1) <= max_size(1, (page + 1) / 4), "%zu of %zu", count(block), page);
    }
    EXPECT_MSG(brought >= PAGES / 2, "%zu", brought);
    EXPECT(look() == filling_none); /* it is full */
    EXPECT(huge_policy_expects_full(BYTES));
}

/* Where the last block was filled, the beginning of this one is enough. */
static void sooner_where_it_is_expected(void)
{
    begin(true);
    char *block = take();
    EXPECT_EQ(bring(), 0);
    touch(block, 0);
    EXPECT_EQ(bring(), FILLING_AHEAD_EXPECTED / HUGE_PAGE_BYTES);
    EXPECT_EQ(count(block), FILLING_AHEAD_EXPECTED / HUGE_PAGE_BYTES + 1);
    filling_forget(block);
}

/* Nor does such a one, touched once in each huge page, speak for those that follow. */
static void what_was_expected_tells_nothing(void)
{
    begin(true); /* twice as much is trusted */
    char *block = take();
    huge_policy_note_asked(BYTES);
    EXPECT(huge_policy_expects_full(BYTES));
    for (size_t page = 0; page < PAGES; page++) {
        touch(block, page);
        bring();
    }
    EXPECT(look() == filling_none); /* it is full */
    huge_policy_note_asked(BYTES);
    EXPECT(!huge_policy_expects_full(BYTES));
}

/* One that is filled does. */
static void what_is_filled_tells(void)
{
    begin(true);
    char *block = take();
    huge_policy_note_asked(2 * BYTES);
    EXPECT(!huge_policy_expects_full(BYTES));
    for (size_t page = 0; page < PAGES; page++) {
        fill(block, page);
        bring();
    }
    EXPECT(look() == filling_none);
    EXPECT(huge_policy_expects_full(BYTES));
}

/* Not even then all of a short one; and who fills no more than the front of it is found out when it is freed. */
static void a_short_one_is_not_brought_whole(void)
{
    begin(true);
    const size_t bytes = 6 * HUGE_PAGE_BYTES;
    char *block = map_block();
    filling_note(block, bytes);
    touch(block, 0);
    EXPECT_EQ(bring(), 2);
    EXPECT(filling_forget(block));
    huge_policy_look(block, bytes, HUGE_PAGE_BYTES, false);
    EXPECT(!huge_policy_expects_full(bytes));
}

static void nothing_for_who_touches_here_and_there(void)
{
    begin(false);
    char *block = take();
    for (size_t page = PAGES; page-- > 0;) {
        touch(block, page);
        EXPECT_EQ(bring(), 0);
    }
    EXPECT_EQ(count(block), PAGES);
    for (size_t page = 2; page < PAGES; page++) { /* from the middle on */
        fill(block, page);
        EXPECT_EQ(bring(), 0);
    }
    filling_forget(block);
}

/* Whoever fills slowly waits little, and has one ahead. */
static void little_for_the_slow(void)
{
    begin(false);
    char *block = take();
    look();
    for (size_t page = 0; page < PAGES; page++) {
        fill(block, page);
        now_ns += SECOND;
        bring();
        EXPECT_MSG(count(block) <= page + 2, "%zu of %zu", count(block), page);
    }
}

static void not_watched_for_ever(void)
{
    begin(false);
    char *block = take();
    EXPECT(look() == filling_goes_on);
    now_ns += 4 * SECOND;
    EXPECT(look() == filling_rests);
    now_ns += 2 * SECOND;
    EXPECT(look() == filling_none);
    fill(block, 0);
    touch(block, 1);
    EXPECT_EQ(bring(), 0);
}

/* What has become dear is taken back: the program takes small pages. */
static void nothing_while_it_is_dear(void)
{
    begin(false);
    char *block = take();
    look();
    fill(block, 0);
    touch(block, 1);
    EXPECT_EQ(bring(), 1); /* at a fair price, so huge pages are asked for the rest, too */
    touch(block, 3);
    look();
    struct prefault_piece piece;
    EXPECT(filling_next(&piece));
    for (int i = 0; i < 20; i++)
        huge_price_note_small(1, HUGE_PAGE_BYTES);
    huge_price_note_huge(10 * 1000 * 1000, os_now_ns()); /* and so is this one, whatever it costs */
    const uint64_t before_ns = os_now_ns();
    EXPECT(filling_bring(&piece));
    EXPECT(huge_price_is_dear(before_ns)); /* and for some moments, which a busy machine may have let pass */
    huge_price_note_huge(10 * 1000 * 1000, os_now_ns());
    EXPECT(huge_price_is_dear(os_now_ns()));
    EXPECT(!huge_policy_asks(BYTES));
    unsigned char there[HUGE_PAGE_BYTES / OS_PAGE_BYTES_MIN];
    touch(block, 5);
    EXPECT(os_find_resident(block + 5 * HUGE_PAGE_BYTES, HUGE_PAGE_BYTES, there));
    EXPECT(there[0] != 0 && there[1] == 0);
    filling_forget(block);
}

static void what_the_program_forbids_is_left_alone(void)
{
    begin(false);
    char *block = take();
    fill(block, 0);
    touch(block, 1);
    EXPECT(mprotect(block + 2 * HUGE_PAGE_BYTES, HUGE_PAGE_BYTES, PROT_NONE) == 0);
    struct prefault_piece piece;
    look();
    EXPECT(filling_next(&piece));
    EXPECT(!filling_bring(&piece));
    EXPECT(!filling_is_due() && look() == filling_none);
}

/* ---- in hand ---- */

static _Atomic bool is_forgotten;

static void *forget(void *block)
{
    filling_forget(block);
    atomic_store(&is_forgotten, true);
    return NULL;
}

static void a_block_in_hand_is_waited_for(void)
{
    begin(false);
    char *block = take();
    fill(block, 0);
    touch(block, 1);
    look();
    struct prefault_piece piece;
    EXPECT(filling_next(&piece));
    pthread_t thread;
    EXPECT(pthread_create(&thread, NULL, forget, block) == 0);
    os_sleep(20000000);
    EXPECT(!atomic_load(&is_forgotten));
    EXPECT(filling_bring(&piece));
    EXPECT(pthread_join(thread, NULL) == 0);
    EXPECT(atomic_load(&is_forgotten));
    EXPECT(!filling_next(&piece));
    EXPECT(look() == filling_none);
}

/* Moved, and shorter: nothing comes to where it was, nor behind its end. */
static void who_is_moved_is_followed(void)
{
    begin(false);
    char *block = take(), *there = map_block();
    fill(block, 0);
    touch(block, 1);
    look();
    struct prefault_piece piece;
    EXPECT(filling_forget(block) && !filling_forget(block));
    EXPECT(!filling_next(&piece));
    filling_go_on(there, 4 * HUGE_PAGE_BYTES);
    for (size_t page = 0; page < 3; page++) {
        fill(there, page);
        bring();
    }
    EXPECT_EQ(count(block), 2);
    EXPECT_EQ(count(there), 3);
    fill(there, 3);
    bring();
    EXPECT_EQ(count(there), 4);
    EXPECT(look() == filling_none);
}

static char *take_fresh(size_t bytes)
{
    bool zero = false;
    char *block = large_take(bytes, 16, &zero);
    EXPECT(block != NULL && zero);
    return block;
}

/* The same through large.h.  One that could not be resized is as long as it was, and about to be copied. */
static void who_is_resized_is_followed(void)
{
    begin(false);
    const size_t mib = (size_t)1 << 20;
    char *mapping = take_fresh(24 * mib), *span = take_fresh(12 * mib);
    EXPECT(look() == filling_goes_on);
    EXPECT((mapping = large_resize(mapping, 41 * mib, false)) != NULL);
    EXPECT(large_resize(span, 20 * mib, false) == NULL);
    EXPECT(!filling_forget(span));
    fill(mapping, 0);
    for (size_t page = 1; page < 10; page++) {
        fill(mapping, page);
        bring();
    }
    EXPECT_MSG(count_of(mapping, 20) >= 10 && count_of(mapping, 20) <= 13, "%zu", count_of(mapping, 20));
    /* Huge pages were asked for in a part of it, and it is not full. */
    EXPECT((mapping = large_resize(mapping, 60 * mib, false)) != NULL);
    EXPECT((mapping = large_resize(mapping, 22 * mib, false)) != NULL);
    EXPECT(mapping_give(mapping));
    EXPECT(look() == filling_none);
    large_span_give(span);
}

/* What was known of the one before it does not count. */
static void the_same_again_is_another(void)
{
    begin(false);
    char *block = take();
    look();
    fill(block, 0);
    touch(block, 1);
    EXPECT_EQ(bring(), 1);
    filling_forget(block);
    EXPECT(madvise(block, BYTES, MADV_DONTNEED) == 0);
    filling_note(block, BYTES);
    touch(block, 1);
    EXPECT_EQ(bring(), 0);
    fill(block, 0);
    EXPECT_EQ(bring(), 1);
    filling_forget(block);
}

/* More than can be watched: the rest is not, and none is lost twice. */
static void as_many_as_there_is_room_for(void)
{
    begin(false);
    enum { MORE = 100 };
    char *block[MORE];
    size_t watched = 0;
    for (size_t i = 0; i < MORE; i++)
        block[i] = take();
    EXPECT(look() == filling_goes_on);
    for (size_t i = 0; i < MORE; i++)
        watched += filling_forget(block[i]);
    EXPECT_MSG(watched == 64, "%zu", watched);
    EXPECT(look() == filling_none);
}

int main(void)
{
    unit_print_mode();
    unit_watchdog(60);
    unit_expect_healthy();
    unsigned char there;
    char *page = map_block();
    if (!os_find_resident(page, os_page_bytes, &there) || !os_populate(page, os_page_bytes) ||
        !region_fits_huge_pages())
        SKIP("the system does not say which pages are there, or brings none (before Linux 5.14)");
    now_ns = SECOND;
    nothing_before_the_beginning_is_filled();
    a_quarter_ahead();
    sooner_where_it_is_expected();
    what_was_expected_tells_nothing();
    what_is_filled_tells();
    a_short_one_is_not_brought_whole();
    nothing_for_who_touches_here_and_there();
    little_for_the_slow();
    not_watched_for_ever();
    what_the_program_forbids_is_left_alone();
    a_block_in_hand_is_waited_for();
    who_is_moved_is_followed();
    the_same_again_is_another();
    who_is_resized_is_followed();
    as_many_as_there_is_room_for();
    nothing_while_it_is_dear(); /* from here on small pages cost little */
    return 0;
}
