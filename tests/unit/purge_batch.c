/* SPDX-License-Identifier: MIT
 *
 * Ranges on their way back: a huge page of which only a part goes must be split first, wherever in it the part lies,
 * and one that goes whole must not.
 */
#include "heap/purge_batch.h"

#include "unit.h"

#define HUGE (2ul << 20)
#define PART (64ul << 10)

static uintptr_t split[4];
static unsigned splits;

/* The linker puts this in the place of the real one. */
void __wrap_os_split_huge(void *page);
void __wrap_os_split_huge(void *page)
{
    EXPECT(splits < ARRAY_LEN(split));
    split[splits++] = align_down((uintptr_t)page, HUGE);
}

static void given(char *start, size_t bytes, unsigned expected, uintptr_t one, uintptr_t other)
{
    static struct purge_batch pages;
    splits = 0;
    purge_batch_add(&pages, start, bytes);
    EXPECT_EQ(splits, expected);
    if (expected > 0)
        EXPECT_EQ(split[0], one);
    if (expected > 1)
        EXPECT_EQ(split[1], other);
    size_t before = pages.bytes;
    purge_batch_flush(&pages);
    EXPECT(!pages.refused);
    EXPECT_EQ(pages.bytes - before, bytes);
}

/* Ranges in the order of their addresses: each page is split once for all of them, and anew after they went. */
static void each_page_is_split_once(char *start)
{
    static struct purge_batch pages;
    for (int round = 0; round < 2; round++) {
        splits = 0;
        for (size_t i = 0; i < 3 * HUGE / PART; i += 3)
            purge_batch_add(&pages, start + i * PART, PART);
        EXPECT_EQ(splits, 3);
        purge_batch_flush(&pages);
    }
}

int main(void)
{
    unit_watchdog(60);
    char *map = unit_map(5 * HUGE), *a = (char *)align_up((uintptr_t)map, HUGE), *b = a + HUGE, *c = b + HUGE;
    uintptr_t in_a = (uintptr_t)a, in_b = (uintptr_t)b, in_c = (uintptr_t)c;
    given(a, HUGE, 0, 0, 0);                        /* one, whole */
    given(a, 2 * HUGE, 0, 0, 0);                    /* two, whole */
    given(a + PART, PART, 1, in_a, 0);              /* the middle */
    given(a, PART, 1, in_a, 0);                     /* the beginning */
    given(a + HUGE - PART, PART, 1, in_a, 0);       /* the end */
    given(a + PART, HUGE, 2, in_a, in_b);           /* over a border */
    given(a, HUGE + PART, 1, in_b, 0);              /* one, whole, and the beginning of the next */
    given(a + PART, 2 * HUGE, 2, in_a, in_c);       /* the one in the middle is whole */
    given(a + PART, 2 * HUGE - PART, 1, in_a, 0);   /* the end of one, and one, whole */
    each_page_is_split_once(a);
    return 0;
}
