/* SPDX-License-Identifier: MIT
 *
 * How long a heap's superblocks are: the first has a sixteenth of the class's length; of small blocks, no other has
 * more than the heap had of the class before; and after a few they have all of it.  And how much of each is carved at
 * first: a unit while they are few, more later.
 */
#include "heap/heap.h"
#include "inspect.h"
#include "unit.h"

#define SUPERBLOCKS 12

static unsigned carved_first[SUPERBLOCKS]; /* bytes, of those that lengths_of saw last */

/* In the order in which the heap takes them. */
static unsigned lengths_of(unsigned c, unsigned *length)
{
    const struct superblock *last = NULL;
    unsigned count = 0;
    while (count < SUPERBLOCKS) {
        void *p = malloc(size_class[c].bytes);
        EXPECT(p != NULL);
        const struct superblock *s = superblock_of(p);
        if (s != last) {
            carved_first[count] = s->carved * s->block_bytes;
            length[count++] = superblock_slices(s);
        }
        last = s;
    }
    return count;
}

static void grows_with_what_there_is(size_t bytes)
{
    const unsigned c = size_class_of(bytes), full = size_class[c].slices;
    unsigned length[SUPERBLOCKS], had = 0;
    const unsigned count = lengths_of(c, length);
    EXPECT_EQ(length[0], (full + 15) / 16);
    for (unsigned i = 0; i < count; had += length[i++]) {
        EXPECT_MSG(i == 0 || length[i] <= had, "superblock %u of %zu bytes has %u slices after %u", i, bytes, length[i],
                   had);
        EXPECT_MSG(had < full || length[i] == full || length[i] * 2 >= had,
                   "superblock %u of %zu bytes has only %u slices after %u", i, bytes, length[i], had);
    }
    EXPECT_EQ(length[count - 1], full);
}

static void is_carved_sparingly_at_first(size_t bytes)
{
    const unsigned c = size_class_of(bytes);
    unsigned length[SUPERBLOCKS];
    const unsigned count = lengths_of(c, length);
    EXPECT_MSG(carved_first[0] <= 4096 + bytes && carved_first[2] <= 8192 + bytes, "%u and %u bytes", carved_first[0],
               carved_first[2]);
    EXPECT_MSG(carved_first[count - 1] >= 16384, "%u bytes", carved_first[count - 1]);
}

/* Of larger blocks a sixteenth holds two: the second superblock has a quarter, the third all. */
static void is_soon_long(size_t bytes)
{
    const unsigned c = size_class_of(bytes), full = size_class[c].slices;
    unsigned length[SUPERBLOCKS];
    lengths_of(c, length);
    EXPECT_MSG(length[0] < length[1] && length[1] < length[2] && length[2] == full, "%u, %u and %u slices of %u",
               length[0], length[1], length[2], full);
}

int main(void)
{
    unit_print_mode();
    unit_watchdog(60);
    struct heap *h = test_heap_new(true);
    test_heap_bind(h);
    is_carved_sparingly_at_first(32);
    is_carved_sparingly_at_first(500);
    grows_with_what_there_is(48);
    grows_with_what_there_is(768);
    grows_with_what_there_is(8192);
    is_soon_long(65536);
    is_soon_long(98304);
    test_heap_bind(NULL);
    return 0;
}
