/* SPDX-License-Identifier: MIT
 *
 * A purge of all free spans ends, however fast other threads free: it gives back what was there when it began.
 */
#include "heap/span.h"

#include "os/os.h"
#include "unit.h"

#define SLICES 40
#define OTHERS_MOST 100000

static unsigned freed_meanwhile;

/* The linker puts this in the place of the real one: another thread frees a block each time pages are given back. */
bool __real_os_purge_ranges(const struct os_range *ranges, size_t count);
bool __wrap_os_purge_ranges(const struct os_range *ranges, size_t count);
bool __wrap_os_purge_ranges(const struct os_range *ranges, size_t count)
{
    uint32_t first;
    EXPECT_MSG(freed_meanwhile++ < OTHERS_MOST, "the purge goes on as long as others free");
    EXPECT(span_take(span_large, SLICES, 1, &first));
    span_give(first, SLICES);
    return __real_os_purge_ranges(ranges, count);
}

int main(void)
{
    unit_print_mode();
    unit_watchdog(60);
    uint32_t first[20];
    for (unsigned i = 0; i < ARRAY_LEN(first); i++)
        EXPECT(span_take(span_large, SLICES, 1, &first[i]));
    for (unsigned i = 0; i < ARRAY_LEN(first); i++)
        span_give(first[i], SLICES);
    bool changed = false;
    size_t dirty = span_counts().dirty_bytes, purged = span_purge(purge_everything, &changed);
    EXPECT(dirty >= ARRAY_LEN(first) * SLICES * SLICE_BYTES);
    EXPECT(purged >= dirty);
    EXPECT(freed_meanwhile > 0);
    EXPECT(changed); /* there is more */
    return 0;
}
