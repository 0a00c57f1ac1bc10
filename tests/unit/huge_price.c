/* SPDX-License-Identifier: MIT
 *
 * When huge pages are asked for, by made-up prices.
 */
#include "heap/huge_price.h"

#include "heap/region.h"
#include "unit.h"

#define MS 1000000ull

static uint64_t now_ns = 1000 * MS;

static void note_small(unsigned times, uint64_t us)
{
    for (unsigned i = 0; i < times; i++)
        huge_price_note_small(us, SLICE_BYTES);
}

static bool fair_after(uint64_t us)
{
    huge_price_note_huge(us, now_ns);
    return huge_price_is_fair(now_ns);
}

/* One that happens to be dear among many is no reason; a second one is. */
static void the_mean_counts(uint64_t fair, uint64_t dear)
{
    for (int i = 0; i < 20; i++)
        EXPECT(fair_after(fair));
    EXPECT(fair_after(dear));
    for (int i = 0; i < 20; i++)
        EXPECT(fair_after(fair));
    int asked = 1;
    while (fair_after(dear))
        EXPECT(++asked < 10);
    EXPECT(asked > 1);
}

/* Then none is asked for until what the last cost is little beside the time since: a few hundredths. */
static void tries_cost_little(uint64_t dear)
{
    uint64_t cost_ns = 0, start_ns = now_ns;
    for (int i = 0; i < 50; i++) {
        EXPECT(!fair_after(dear));
        cost_ns += dear * 1000;
        while (!huge_price_is_fair(now_ns))
            now_ns += MS / 10;
    }
    EXPECT_MSG(cost_ns * 12 < now_ns - start_ns, "%llu of %llu us", (unsigned long long)cost_ns / 1000,
               (unsigned long long)(now_ns - start_ns) / 1000);
    EXPECT_MSG(cost_ns * 40 > now_ns - start_ns, "hardly ever tried");
}

/* The first that is fair again is believed. */
static void it_may_be_over(uint64_t fair, uint64_t dear)
{
    EXPECT(!fair_after(dear));
    now_ns += 1000 * MS;
    EXPECT(huge_price_is_fair(now_ns));
    EXPECT(fair_after(fair));
    EXPECT(fair_after(fair));
}

/* Where there are none it is seldom tried, however fast that goes. */
static void refused_ones_are_tried_again(uint64_t fair)
{
    huge_price_note_refused(now_ns);
    EXPECT(!huge_price_is_fair(now_ns + 50 * MS));
    now_ns += 1000 * MS;
    EXPECT(fair_after(fair));
}

/* Small pages come at their lowest price: a dear one makes no huge page fair. */
static void the_lowest_small_price_counts(uint64_t just_fair)
{
    note_small(1, 10000);
    EXPECT(fair_after(just_fair));
    EXPECT(!fair_after(just_fair * 20));
    note_small(100, 100); /* but they may become dearer */
    now_ns += 10000 * MS;
    EXPECT(fair_after(just_fair * 5));
}

int main(void)
{
    const uint64_t slices = HUGE_PAGE_SLICES, small = 10; /* us a slice */
    unit_print_mode();
    unit_watchdog(60);
    EXPECT(!huge_price_is_fair(now_ns)); /* against what? */
    note_small(1, 5000);                 /* the first may have been disturbed */
    note_small(2, small);
    EXPECT(!huge_price_is_known() && !huge_price_is_fair(now_ns));
    note_small(1, small + 3);
    EXPECT(huge_price_is_known() && huge_price_is_fair(now_ns));
    the_mean_counts(5 * slices, 50 * slices);
    now_ns += 10000 * MS;
    EXPECT(fair_after(2 * small * slices));
    EXPECT(fair_after(2 * small * slices)); /* twice the price is fair */
    tries_cost_little(2000);
    tries_cost_little(50000);
    it_may_be_over(100, 2000);
    refused_ones_are_tried_again(100);
    the_lowest_small_price_counts(2 * small * slices);
    return 0;
}
