/* SPDX-License-Identifier: MIT
 *
 * A program that goes from blocks of one size to blocks of another: what it freed before serves the next, in whatever
 * class, and what it still holds stays as it is.
 */
#include "heap/heap.h"
#include "heap/span.h"
#include "inspect.h"
#include "unit.h"

#include <string.h>

#define PHASE_BYTES (2ul << 20)
#define BLOCKS_MAX  (PHASE_BYTES / 64)

static void *blocks[BLOCKS_MAX];

/* Of the free spans, only those that may have pages. */
static size_t bytes_with_pages(void)
{
    struct span_counts counts = span_counts();
    return counts.in_use_bytes + counts.dirty_bytes;
}

static void phase(size_t bytes)
{
    const size_t count = PHASE_BYTES / bytes;
    for (size_t i = 0; i < count; i++)
        EXPECT((blocks[i] = malloc(bytes)) != NULL);
    for (size_t i = 0; i < count; i++)
        free(blocks[i]);
}

static void what_other_sizes_left_is_used(void)
{
    const size_t before = bytes_with_pages();
    for (unsigned c = size_class_of(64); c < CLASS_COUNT; c++)
        phase(size_class[c].bytes);
    const size_t more = bytes_with_pages() - before;
    EXPECT_MSG(more <= 5 * PHASE_BYTES, "%zu KiB with pages after phases of %zu KiB", more >> 10, PHASE_BYTES >> 10);
}

/* A block of each class, in its active superblock. */
static void what_is_held_stays(void)
{
    static unsigned char *held[CLASS_COUNT];
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        EXPECT((held[c] = malloc(size_class[c].bytes)) != NULL);
        memset(held[c], (int)c + 1, size_class[c].bytes);
    }
    for (size_t bytes = 700; bytes < 100000; bytes += bytes / 3)
        phase(bytes);
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        EXPECT_EQ(superblock_of(held[c])->class, c);
        for (size_t i = 0; i < size_class[c].bytes; i++)
            EXPECT(held[c][i] == c + 1);
        free(held[c]);
    }
}

/* A class of a few small blocks keeps its short superblock, however much of others the program takes. */
static void what_is_short_is_kept(void)
{
    void *p = malloc(208);
    EXPECT(p != NULL);
    const struct superblock *s = superblock_of(p);
    free(p);
    for (size_t i = 0; i < BLOCKS_MAX / 8; i++)
        EXPECT((blocks[i] = malloc(5000)) != NULL);
    EXPECT(slice_kind(&s->slice) == slice_superblock && s->class == size_class_of(208));
    for (size_t i = 0; i < BLOCKS_MAX / 8; i++)
        free(blocks[i]);
}

int main(void)
{
    unit_print_mode();
    unit_watchdog(60);
    struct heap *h = test_heap_new(true);
    test_heap_bind(h);
    what_other_sizes_left_is_used();
    what_is_held_stays();
    what_is_short_is_kept();
    test_heap_bind(NULL);
    return 0;
}
