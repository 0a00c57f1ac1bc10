/* SPDX-License-Identifier: MIT
 *
 * Surplus: what a heap frees becomes spans, but for a few superblocks.  A heap that takes it all again keeps it, up to
 * a bound, and for as long as it goes on doing so.
 */
#include "heap/heap.h"
#include "heap/span.h"
#include "inspect.h"
#include "unit.h"

#define BYTES      64u
#define BLOCKS_MAX ((32ul << 20) / BYTES)

static void *blocks[BLOCKS_MAX];

/* Takes and frees so many bytes of blocks; returns how many slices of superblocks there were at most, and in `kept` how
 * many are left. */
static size_t phase(size_t bytes, size_t *kept)
{
    const size_t count = bytes / BYTES;
    for (size_t i = 0; i < count; i++)
        EXPECT((blocks[i] = malloc(BYTES)) != NULL);
    const size_t most = span_counts().in_use_bytes;
    for (size_t i = 0; i < count; i++)
        free(blocks[i]);
    *kept = span_counts().in_use_bytes / SLICE_BYTES;
    expect_heaps_sound();
    return most / SLICE_BYTES;
}

int main(void)
{
    unit_print_mode();
    unit_watchdog(120);
    struct heap *h = test_heap_new(true);
    test_heap_bind(h);
    size_t first, kept;
    size_t most = phase(6 << 20, &first);
    EXPECT_MSG(first <= 20, "%zu slices kept of %zu that were wanted once", first, most);
    phase(6 << 20, &kept);
    most = phase(6 << 20, &kept);
    EXPECT_MSG(kept + 2 >= most, "%zu slices kept of %zu that are wanted again and again", kept, most);

    /* A bound, however much is wanted: 128 slices. */
    for (int i = 0; i < 3; i++)
        most = phase(32 << 20, &kept);
    EXPECT_MSG(most >= 512 && kept <= 130, "%zu slices kept of %zu", kept, most);

    /* Passes forget it.  Each superblock that is relisted has one released. */
    for (int i = 0; i < 8; i++)
        heap_halve_retaken(h);
    for (int i = 0; i < 20; i++)
        phase(1 << 20, &kept);
    EXPECT_MSG(kept <= first, "%zu slices kept, %zu at first", kept, first);
    test_heap_bind(NULL);
    return 0;
}
