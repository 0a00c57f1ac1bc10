/* SPDX-License-Identifier: MIT
 *
 * A purge of all free spans ends, however fast other threads free: it purges what was there when it began.  And it
 * finds that, whatever they take and merge meanwhile.
 */
#include "heap/span.h"

#include <pthread.h>

#include "heap/ample.h"
#include "heap/arena.h"
#include "heap/huge.h"
#include "heap/huge_policy.h"
#include "heap/large.h"
#include "options/options.h"
#include "os/os.h"
#include "unit.h"

#define SLICES 40
#define OTHERS_MOST 100000

static unsigned freed_meanwhile;
static bool others_free = true;

/* The linker puts this in the place of the real one: another thread frees a block each time pages are purged. */
bool __real_os_purge_ranges(const struct os_range *ranges, size_t count);
bool __wrap_os_purge_ranges(const struct os_range *ranges, size_t count);
bool __wrap_os_purge_ranges(const struct os_range *ranges, size_t count)
{
    uint32_t first;
    if (!others_free)
        return __real_os_purge_ranges(ranges, count);
    EXPECT_MSG(freed_meanwhile++ < OTHERS_MOST, "the purge goes on as long as others free");
    EXPECT(span_take(span_large, SLICES, 1, &first));
    span_give(first, SLICES);
    return __real_os_purge_ranges(ranges, count);
}

/* ---- a long free span, at which another thread is at work ---- */

#define LONG 20000u /* far longer than what is looked at in one go */
#define ITS 5u

static _Atomic bool at_work;
static uint32_t long_first;

/* Takes some slices off its front and gives them back. */
static void *take_and_give(void *unused)
{
    struct rng rng = {1};
    while (at_work) {
        uint32_t slices = 1 + (uint32_t)rng_below(&rng, ITS);
        if (span_extend(long_first, slices))
            span_give(long_first, slices);
    }
    return unused;
}

/* What it has in its hands meanwhile may be left; were the walk lost, thousands of slices would be. */
static void a_long_span_is_not_lost(void)
{
    pthread_t thread;
    uint32_t before;
    bool changed;
    others_free = false;
    EXPECT(span_take(span_large, 1 + LONG, 1, &before));
    long_first = before + 1;
    at_work = true;
    EXPECT_EQ(pthread_create(&thread, NULL, take_and_give, NULL), 0);
    span_give(long_first, LONG);
    span_purge(purge_decay, 0, &changed);
    size_t aged = 0;
    for (uint32_t i = 0; i < LONG; i++)
        aged += slice_at(long_first + i)->is_aged;
    EXPECT_MSG(aged + 2 * ITS >= LONG, "%zu slices were not seen", LONG - aged);
    span_purge(purge_force, 0, &changed);
    at_work = false;
    EXPECT_EQ(pthread_join(thread, NULL), 0);
    size_t left = slices_holding(long_first, LONG, content_used);
    EXPECT_MSG(left <= ITS, "%zu slices were not purged", left);
    span_give(before, 1);
}

/* While the program works and large blocks are filled, a huge page that was asked for is broken if half of it goes; the
 * last pass breaks any. */
static void huge_pages_are_broken_last(uint32_t head, uint32_t tail, bool advised)
{
    const uint32_t slices = 4 * HUGE_PAGE_SLICES;
    uint32_t base;
    bool changed = false;
    others_free = false;
    span_purge(purge_force, 0, &changed);
    EXPECT(span_take(span_large, slices, HUGE_PAGE_SLICES, &base));
    const uint32_t first = base + HUGE_PAGE_SLICES - head, end = base + 3 * HUGE_PAGE_SLICES + tail;
    if (advised)
        huge_ask_run(slice_address(base), slices << SLICE_SHIFT);
    huge_policy_note_filled(8 * HUGE_PAGE_BYTES);
    EXPECT(huge_policy_expects_full(HUGE_POLICY_BYTES_MIN));
    span_give(first, end - first);
    const bool head_goes = !advised || head * 2 >= HUGE_PAGE_SLICES;
    const bool tail_goes = !advised || tail * 2 >= HUGE_PAGE_SLICES;
    const size_t goes = 2 * HUGE_PAGE_SLICES + (head_goes ? head : 0) + (tail_goes ? tail : 0);
    EXPECT_EQ(span_purge(purge_decay, 0, &changed), 0);
    EXPECT_EQ(span_purge(purge_decay, 0, &changed), goes * SLICE_BYTES);
    changed = false;
    const bool one_was_broken = goes > 2 * HUGE_PAGE_SLICES; /* then those around it are asked for no more */
    EXPECT(span_purge(purge_decay, 0, &changed) == 0 || one_was_broken);
    EXPECT(!changed);
    span_purge(purge_idle, 0, &changed);
    EXPECT_EQ(slices_holding(first, end - first, content_used), 0);
    span_give(base, first - base);
    span_give(end, base + slices - end);
    huge_unask_run(slice_address(base), slices << SLICE_SHIFT);
}

/* A run of free slices that does not reach either end of its huge page. */
static void within_one_page(uint32_t run, bool goes)
{
    uint32_t base;
    bool changed = false;
    span_purge(purge_force, 0, &changed);
    EXPECT(span_take(span_large, HUGE_PAGE_SLICES, HUGE_PAGE_SLICES, &base));
    huge_ask_run(slice_address(base), HUGE_PAGE_BYTES);
    huge_policy_note_filled(8 * HUGE_PAGE_BYTES);
    span_give(base + 3, run);
    EXPECT_EQ(span_purge(purge_decay, 0, &changed), 0);
    EXPECT_EQ(span_purge(purge_decay, 0, &changed), goes ? run * SLICE_BYTES : 0);
    span_give(base, 3);
    span_give(base + 3 + run, HUGE_PAGE_SLICES - 3 - run);
}

int main(int argc, char **argv)
{
    unit_print_mode();
    unit_watchdog(60);
    uint32_t first[20];
    for (unsigned i = 0; i < ARRAY_LEN(first); i++)
        EXPECT(span_take(span_large, SLICES, 1, &first[i]));
    for (unsigned i = 0; i < ARRAY_LEN(first); i++)
        span_give(first[i], SLICES);
    bool changed = false;
    size_t dirty = span_counts().dirty_bytes, purged = span_purge(purge_force, 0, &changed);
    EXPECT(dirty >= ARRAY_LEN(first) * SLICES * SLICE_BYTES);
    EXPECT(purged >= dirty);
    EXPECT(freed_meanwhile > 0);
    EXPECT(changed); /* there is more */
    if (huge_policy_tells(HUGE_POLICY_BYTES_MIN)) {
        huge_pages_are_broken_last(10, 20, true);
        huge_pages_are_broken_last(20, 10, true);
        huge_pages_are_broken_last(0, 0, true);
        huge_pages_are_broken_last(10, 9, false);
        within_one_page(14, false);
        within_one_page(18, true);
    }
    atomic_store(&unmap_is_async, true);
    ample_allow(SIZE_MAX, UINT64_MAX, SIZE_MAX); /* the thread that frees gives nothing back */
    for (uint64_t i = 0; i < unit_option(argc, argv, "--rounds", 100); i++)
        a_long_span_is_not_lost();
    return 0;
}
