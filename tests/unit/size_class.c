/* SPDX-License-Identifier: MIT
 *
 * The size class table against its own promises: for every size there is, for every offset there is, and the comment
 * above the rows, which people read and nobody else checks.
 */
#include <malloc.h>

#include "heap/layout.h"
#include "heap/size_class.h"
#include "rcs/hot.h"
#include "unit.h"

static void every_size_gets_the_smallest_class_that_holds_it(void)
{
    unsigned expected = 0;
    for (size_t size = 0; size <= CLASS_BYTES_MAX; size++) {
        if (size > size_class[expected].bytes)
            expected++;
        EXPECT(expected < CLASS_COUNT && size <= size_class[expected].bytes);
        if (size_class_of(size) != expected)
            FAIL("size %zu: class %u, not %u", size, size_class_of(size), expected);
        size_t bytes = size_class[expected].bytes;
        if (size >= 128 && (bytes - size) * 8 > bytes)
            FAIL("size %zu in a block of %zu wastes more than 12.5 %%", size, bytes);
        if (size > 0 && size < 128 && bytes - size >= 16)
            FAIL("size %zu in a block of %zu wastes more than a step", size, bytes);
    }
    EXPECT_EQ(expected, CLASS_COUNT - 1);
    EXPECT_EQ(size_class[CLASS_COUNT - 1].bytes, CLASS_BYTES_MAX);
}

static void the_byte_tables_agree(void)
{
    if (hot.small_limit == 0)
        return; /* no fast path in this mode, and no tables */
    for (size_t size = 0; size <= SMALL_BYTES_MAX; size++)
        if (size_class_of_small[size] != size_class_of(size))
            FAIL("size %zu: table says %u, not %u", size, size_class_of_small[size], size_class_of(size));
    EXPECT_EQ(ARRAY_LEN(size_class_of_small), SMALL_BYTES_MAX + 1);
    EXPECT_EQ(hot.medium_limit, CLASS_BYTES_MAX + 1);
    for (size_t size = SMALL_BYTES_MAX + 1; size <= CLASS_BYTES_MAX; size++)
        if (size_class_of_medium[size_class_step(size)] != size_class_of(size))
            FAIL("size %zu: table says %u, not %u", size, size_class_of_medium[size_class_step(size)],
                 size_class_of(size));
}

/* Another thread's vfork closes the fast paths, and opens them again: between two loads of a malloc anything may
 * change. */
static void any_size_may_find_one_table_closed(void)
{
    if (hot.small_limit == 0)
        return;
    size_t small_limit = hot.small_limit, sizes[] = {0, 1, 16, 127, 128, 129, 1000, SMALL_BYTES_MAX};
    for (unsigned i = 0; i < ARRAY_LEN(sizes); i++) {
        hot.small_limit = 0;
        void *p = malloc(sizes[i]);
        hot.small_limit = small_limit;
        EXPECT(p != NULL && malloc_usable_size(p) >= sizes[i]);
        free(p);
    }
}

static void rows_fit_the_code_that_uses_them(void)
{
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        const struct size_class *row = &size_class[c];
        EXPECT_EQ(row->bytes % BLOCK_ALIGNMENT, 0);
        EXPECT(row->slices > 0 && row->slices <= 64); /* a bit per unit */
        EXPECT_EQ(row->blocks, row->slices * SLICE_BYTES / row->bytes);
        EXPECT(row->blocks >= 8);    /* a refill brings some, and eighths make sense */
        EXPECT(row->blocks <= 4096); /* bitmaps on the stack; counts in 15 bits */
        EXPECT(c == 0 || row->bytes > size_class[c - 1].bytes);
    }
}

/* (offset * reciprocal) mod 2^64 < reciprocal iff a block starts there, for every offset from the first block, and
 * before it, in the gap; and the product's upper half is the block's number. */
static void the_reciprocal_finds_block_starts(void)
{
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        const struct size_class *row = &size_class[c];
        const int64_t bytes = row->bytes, end = (int64_t)(row->slices * SLICE_BYTES);
        for (int64_t offset = BLOCK_ALIGNMENT - bytes; offset < end; offset++) {
            bool starts = offset >= 0 && offset % bytes == 0;
            if (((uint64_t)offset * row->reciprocal < row->reciprocal) != starts)
                FAIL("class of %u bytes: offset %lld taken for %s", row->bytes, (long long)offset,
                     starts ? "none" : "a start");
            if (offset >= 0 && (int64_t)((unsigned __int128)offset * row->reciprocal >> 64) != offset / bytes)
                FAIL("class of %u bytes: wrong number of the block at offset %lld", row->bytes, (long long)offset);
        }
    }
}

static void aligned_requests_get_aligned_blocks(void)
{
    for (size_t alignment = 1; alignment <= SLICE_BYTES; alignment *= 2)
        for (size_t size = 0; size <= CLASS_BYTES_MAX; size += size < 2048 ? 1 : 61) {
            unsigned c = size_class_of_aligned(size, alignment), expected = size_class_of(size);
            while (expected < CLASS_COUNT && size_class[expected].bytes % alignment != 0)
                expected++;
            if (c != expected)
                FAIL("size %zu, alignment %zu: class %u, not %u", size, alignment, c, expected);
            EXPECT(c < CLASS_COUNT); /* the largest class is a multiple of the slice: there always is one */
        }
    EXPECT_EQ(size_class_of_aligned(CLASS_BYTES_MAX + 1, 1), CLASS_COUNT);
    EXPECT_EQ(size_class_of_aligned(SIZE_MAX, 64), CLASS_COUNT);
}

/* The comment of the table, a line a class: " * B bytes, S slices: N blocks, T % tail, R % rounding". */
static void comments_say_the_truth(const char *path)
{
    FILE *file = fopen(path, "r");
    EXPECT_MSG(file != NULL, "cannot read %s", path);
    char line[256];
    unsigned c = 0;
    while (fgets(line, sizeof line, file) != NULL) {
        unsigned bytes, slices, blocks;
        double tail, rounding;
        if (strstr(line, " bytes, ") == NULL)
            continue;
        int fields = sscanf(line, " * %u bytes, %u slices: %u blocks, %lf %% tail, %lf %% rounding", &bytes, &slices,
                            &blocks, &tail, &rounding);
        EXPECT_MSG(fields == 5, "not understood: %s", line);
        EXPECT(c < CLASS_COUNT);
        EXPECT_EQ(bytes, size_class[c].bytes);
        EXPECT_EQ(slices, size_class[c].slices);
        EXPECT_EQ(blocks, size_class[c].blocks);
        double whole = (double)slices * SLICE_BYTES;
        double real_tail = 100 * (whole - (double)blocks * bytes) / whole;
        double smallest = c == 0 ? 1 : size_class[c - 1].bytes + 1;
        double real_rounding = 100 * (bytes - smallest) / bytes;
        EXPECT_MSG(tail > real_tail - 0.051 && tail < real_tail + 0.051, "tail is %.3f %%: %s", real_tail, line);
        EXPECT_MSG(rounding > real_rounding - 0.051 && rounding < real_rounding + 0.051, "rounding is %.3f %%: %s",
                   real_rounding, line);
        c++;
    }
    EXPECT_EQ(c, CLASS_COUNT);
    fclose(file);
}

int main(void)
{
    every_size_gets_the_smallest_class_that_holds_it();
    the_byte_tables_agree();
    any_size_may_find_one_table_closed();
    rows_fit_the_code_that_uses_them();
    the_reciprocal_finds_block_starts();
    aligned_requests_get_aligned_blocks();
    comments_say_the_truth(SIZE_CLASSES_DEF);
    return 0;
}
