/* SPDX-License-Identifier: MIT
 *
 * A superblock whose free pages were purged out of a huge page has holes, and a page fault for each of their pages:
 * malloc takes what is free in such superblocks, then fresh memory, and fills the holes when there is none.
 */
#include "heap/huge.h"
#include "heap/purge.h"
#include "heap/span.h"
#include "inspect.h"
#include "unit.h"

#define BYTES      208u
#define BLOCKS     ((96u << 20) / BYTES)
#define FIRST      ((32u << 20) / BYTES) /* from here on they lie where huge pages are asked for */
#define KEEP_EVERY 50
#define ALONE      480u /* bytes; of this class one superblock lies in a huge page: the second */

static char *block[BLOCKS], *again[2 * BLOCKS], *alone[1024];

size_t __wrap_os_resident_peak_bytes(void);
size_t __wrap_os_resident_peak_bytes(void)
{
    return SIZE_MAX;
}

static bool is_out_of_memory;

int __real_os_map_at(void *address, size_t size);
int __wrap_os_map_at(void *address, size_t size);
int __wrap_os_map_at(void *address, size_t size)
{
    return is_out_of_memory ? ENOMEM : __real_os_map_at(address, size);
}

struct holes {
    size_t superblocks, spare, blocks; /* free blocks; blocks there is room for in the holes */
};

static struct holes holes_of(size_t bytes)
{
    struct holes holes = {0};
    unsigned c = size_class_of(bytes);
    for (uint32_t slice = region_slice_from(0); slice != SLICE_END; slice = region_slice_from(slice + 1)) {
        const struct superblock *s = superblock_at_slice(slice);
        if (s->slice.kind != slice_superblock || s->class != c || !s->has_holes)
            continue;
        EXPECT(huge_was_split(slice));
        holes.superblocks++;
        holes.spare += superblock_free_blocks(s);
        holes.blocks += (size_t)(s->blocks - s->carved);
    }
    return holes;
}

static unsigned alone_blocks(void)
{
    return size_class[size_class_of(ALONE)].blocks;
}

static bool try_fill(char **at, unsigned i, size_t bytes)
{
    if ((at[i] = malloc(bytes)) == NULL)
        return false;
    memset(at[i], (char)i, bytes);
    *(unsigned *)at[i] = i;
    return true;
}

static void fill(char **at, unsigned i)
{
    EXPECT_MSG(try_fill(at, i, BYTES), "block %u", i);
}

static void expect_filled(char *const *at, unsigned from, unsigned end)
{
    for (unsigned i = from; i < end; i++)
        EXPECT(at[i] == NULL || (*(unsigned *)at[i] == i && at[i][BYTES - 1] == (char)i));
}

static void purge(void)
{
    bool changed = true;
    for (unsigned passes = 0; changed; passes++) {
        EXPECT(passes < 20);
        heap_purge(purge_idle, &changed);
    }
}

static struct holes free_most(void)
{
    for (unsigned i = FIRST; i < BLOCKS; i++)
        if (i % KEEP_EVERY != 0) {
            free(block[i]);
            block[i] = NULL;
        }
    purge();
    struct holes holes = holes_of(BYTES);
    unit_say("%zu superblocks with holes for %zu blocks, %zu free\n", holes.superblocks, holes.blocks, holes.spare);
    EXPECT(holes.blocks > (BLOCKS - FIRST) / 2 && holes.spare > (BLOCKS - FIRST) / 8);
    expect_heaps_sound();
    return holes;
}

static unsigned take_free_then_fresh(struct holes before)
{
    size_t in_use = span_in_use_bytes();
    unsigned count = 0;
    while (holes_of(BYTES).spare > before.spare / 16)
        for (unsigned i = 0; i < before.spare / 64; i++)
            fill(again, count++);
    EXPECT_MSG(span_in_use_bytes() <= in_use + before.spare / 8 * BYTES, "fresh memory before what was free");
    for (unsigned i = 0; i < before.blocks / 2; i++)
        fill(again, count++);
    EXPECT_MSG(holes_of(BYTES).blocks == before.blocks, "%zu holes of %zu", holes_of(BYTES).blocks, before.blocks);
    expect_heaps_sound();
    return count;
}

/* To the last block. */
static unsigned fill_without_memory(unsigned count)
{
    unsigned from = count;
    is_out_of_memory = true;
    while (try_fill(again, count, BYTES))
        EXPECT(++count < ARRAY_LEN(again));
    EXPECT(holes_of(ALONE).superblocks == 1);
    for (unsigned i = alone_blocks() + 1; try_fill(alone, i, ALONE); i++)
        EXPECT(i + 1 < ARRAY_LEN(alone));
    EXPECT_EQ(class_inspect(size_class_of(ALONE)).live, 2 * alone_blocks());
    is_out_of_memory = false;
    unit_say("%u blocks without memory\n", count - from);
    EXPECT_EQ(holes_of(BYTES).blocks, 0);
    EXPECT_EQ(holes_of(BYTES).spare, 0);
    expect_heaps_sound();
    return count;
}

int main(void)
{
    unit_print_mode();
    unit_watchdog(120);
    for (unsigned i = 0; i < BLOCKS; i++)
        fill(block, i);
    EXPECT(region_huge_from() < SLICE_END);
    for (unsigned i = 0; i < 2 * alone_blocks(); i++)
        EXPECT(try_fill(alone, i, ALONE));
    for (unsigned i = alone_blocks() + 1; i < 2 * alone_blocks(); i++)
        free(alone[i]);
    struct holes holes = free_most();
    unsigned count = take_free_then_fresh(holes);
    count = fill_without_memory(count);
    expect_filled(block, 0, BLOCKS);
    expect_filled(again, 0, count);
    for (unsigned i = 0; i < BLOCKS; i++)
        free(block[i]);
    for (unsigned i = 0; i < count; i++)
        free(again[i]);
    EXPECT_EQ(class_inspect(size_class_of(BYTES)).live, 0);
    expect_heaps_sound();
    return 0;
}
