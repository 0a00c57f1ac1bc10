/* SPDX-License-Identifier: MIT
 *
 * A large block that is cleared reads as zero, whatever was in it, and pages that are not there are not brought in for
 * that where they are most of them.
 */
#include "heap/clear.h"

#include "heap/region.h"
#include "os/os.h"
#include "unit.h"

#define PIECES 8u
#define BYTES  (PIECES * HUGE_PAGE_BYTES + 5 * OS_PAGE_BYTES_MIN)

/* Swapped out: not there, but not zero either.  Or the system does not tell. */
static bool is_swapped, is_unknown;
static bool hides_one; /* as if the pages asked for one by one were not there */
static unsigned questions, looks;

bool __real_os_find_resident(void *address, size_t size, unsigned char *there);
bool __wrap_os_find_resident(void *address, size_t size, unsigned char *there);
bool __wrap_os_find_resident(void *address, size_t size, unsigned char *there)
{
    questions++;
    if (is_unknown)
        return false;
    if (is_swapped)
        memset(there, 0, size / os_page_bytes);
    return is_swapped || __real_os_find_resident(address, size, there);
}

bool __real_os_is_resident(const void *address);
bool __wrap_os_is_resident(const void *address);
bool __wrap_os_is_resident(const void *address)
{
    looks++;
    return !is_unknown && !is_swapped && !hides_one && __real_os_is_resident(address);
}

static unsigned char *map(void)
{
    unsigned char *mapped = os_map(BYTES + 2 * HUGE_PAGE_BYTES);
    EXPECT(mapped != NULL);
    os_advise_small(mapped, BYTES + 2 * HUGE_PAGE_BYTES); /* whatever the system's default */
    /* As blocks lie: at a page, in the middle of a huge one. */
    return (unsigned char *)align_up((uintptr_t)mapped, HUGE_PAGE_BYTES) + 3 * os_page_bytes;
}

static size_t there(unsigned char *block, size_t bytes)
{
    static unsigned char pages[BYTES / OS_PAGE_BYTES_MIN + 1];
    size_t count = 0;
    EXPECT(__real_os_find_resident(block, align_up(bytes, os_page_bytes), pages));
    for (size_t i = 0; i < align_up(bytes, os_page_bytes) / os_page_bytes; i++)
        count += pages[i];
    return count;
}

static void expect_zero(const unsigned char *block, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        EXPECT_MSG(block[i] == 0, "byte %zu", i);
}

static void touch_some(unsigned char *block, size_t every)
{
    for (size_t at = 0; at < BYTES; at += every * os_page_bytes)
        block[at] = 0xff;
    block[BYTES - 1] = 0xff;
}

static void clear(unsigned char *block, size_t bytes)
{
    EXPECT(large_clear(block, bytes) == block);
}

static void what_is_not_there_is_not_brought_in(void)
{
    unsigned char *block = map();
    touch_some(block, 16);
    clear(block, BYTES - 100);
    EXPECT(there(block, BYTES) == 1); /* the last page, of which a part is not to be cleared */
    expect_zero(block, BYTES - 100);
    EXPECT_EQ(block[BYTES - 1], 0xff);
}

static void what_is_there_stays_there(void)
{
    unsigned char *block = map();
    memset(block, 0xff, BYTES);
    questions = 0;
    clear(block, BYTES);
    EXPECT_EQ(questions, 0); /* a page or two told */
    EXPECT(there(block, BYTES) == BYTES / os_page_bytes);
    expect_zero(block, BYTES);
    touch_some(block, 2);
    clear(block, BYTES);
    EXPECT(there(block, BYTES) == BYTES / os_page_bytes);
    expect_zero(block, BYTES);
}

static void half_of_it_stays_there(void)
{
    unsigned char *block = map();
    touch_some(block, 2);
    size_t had = there(block, BYTES);
    hides_one = true;
    clear(block, BYTES);
    hides_one = false;
    EXPECT(there(block, BYTES) >= had);
    expect_zero(block, BYTES);
}

/* A part is full, and the rest was not touched. */
static void each_piece_by_itself(void)
{
    unsigned char *block = map();
    memset(block, 0xff, 2 * HUGE_PAGE_BYTES);
    touch_some(block, 128);
    clear(block, BYTES);
    size_t left = there(block, BYTES), full = 2 * HUGE_PAGE_BYTES / os_page_bytes;
    EXPECT_MSG(left <= full && left >= full - 4, "%zu", left);
    expect_zero(block, BYTES);
}

static void not_beyond_its_last_page(void)
{
    unsigned char *block = map();
    const size_t bytes = HUGE_PAGE_BYTES + 10;
    block[0] = block[bytes - 1] = 0xff;
    unsigned char *next = block + align_up(bytes, os_page_bytes);
    *next = 0xff;
    clear(block, bytes);
    expect_zero(block, bytes);
    EXPECT_EQ(*next, 0xff);
}

static void what_was_swapped_out_is_cleared(void)
{
    unsigned char *block = map();
    memset(block, 0xff, BYTES);
    is_swapped = true;
    clear(block, BYTES);
    is_swapped = false;
    expect_zero(block, BYTES);
}

static void where_the_system_does_not_tell(void)
{
    unsigned char *block = map();
    touch_some(block, 16);
    is_unknown = true;
    clear(block, BYTES);
    is_unknown = false;
    expect_zero(block, BYTES);
}

static void short_ones_are_not_asked_about(void)
{
    unsigned char *block = map();
    const size_t bytes = 256 << 10;
    memset(block, 0xff, bytes + 1);
    questions = looks = 0;
    clear(block, bytes);
    EXPECT_EQ(questions + looks, 0);
    expect_zero(block, bytes);
    EXPECT_EQ(block[bytes], 0xff);
}

int main(void)
{
    unit_print_mode();
    unit_watchdog(60);
    what_is_not_there_is_not_brought_in();
    what_is_there_stays_there();
    half_of_it_stays_there();
    each_piece_by_itself();
    not_beyond_its_last_page();
    what_was_swapped_out_is_cleared();
    where_the_system_does_not_tell();
    short_ones_are_not_asked_about();
    return 0;
}
