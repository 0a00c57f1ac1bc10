/* SPDX-License-Identifier: MIT
 *
 * A purge of all free spans ends, however fast other threads free: it purges what was there when it began.  And it
 * finds that, whatever they take and merge meanwhile.
 */
#include "heap/span.h"

#include <pthread.h>

#include "heap/ample.h"
#include "heap/arena.h"
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

/* While the program works, where large blocks were asked to be in huge pages: only the last pass breaks one. */
static void huge_pages_go_whole(void)
{
    const uint32_t slices = 100;
    uint32_t before;
    bool changed = false;
    others_free = false;
    span_purge(purge_force, 0, &changed);
    EXPECT(span_take(span_large, slices + 2, 1, &before)); /* two stay */
    uint32_t first = before + 1, end = first + slices;
    size_t whole = align_down(end, HUGE_PAGE_SLICES) - align_up(first, HUGE_PAGE_SLICES);
    option_value[option_huge_pages] = huge_pages_on;
    span_give(first, slices);
    EXPECT_EQ(span_purge(purge_decay, 0, &changed), 0);
    EXPECT_EQ(span_purge(purge_decay, 0, &changed), whole * SLICE_BYTES);
    changed = false;
    EXPECT_EQ(span_purge(purge_decay, 0, &changed), 0);
    EXPECT(!changed);
    EXPECT_EQ(span_purge(purge_idle, 0, &changed), (slices - whole) * SLICE_BYTES);
    option_value[option_huge_pages] = huge_pages_auto;
    span_give(before, 1);
    span_give(end, 1);
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
    huge_pages_go_whole();
    atomic_store(&unmap_is_async, true);
    ample_allow(SIZE_MAX, UINT64_MAX, SIZE_MAX); /* the thread that frees gives nothing back */
    for (uint64_t i = 0; i < unit_option(argc, argv, "--rounds", 100); i++)
        a_long_span_is_not_lost();
    return 0;
}
