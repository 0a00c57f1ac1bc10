/* SPDX-License-Identifier: MIT
 *
 * Before memory is refused (heap_make_room): superblocks lend what is free of them if that can make room for what is
 * wanted, and only then; and what was freed since is found although nothing is looked at twice that looks as it did.
 */
#include "heap/purge.h"
#include "heap/span.h"
#include "inspect.h"
#include "unit.h"

enum { BLOCKS = 400, KEPT_EVERY = 40 };
#define BYTES 36000
#define MORE_THAN_A_SUPERBLOCK ((size_t)64 << 20)

static char *block[BLOCKS];
static bool system_refuses;

void *__real_os_map(size_t size);
void *__wrap_os_map(size_t size);
void *__wrap_os_map(size_t size)
{
    return system_refuses ? NULL : __real_os_map(size);
}

static size_t room_made_for(size_t bytes)
{
    EXPECT(slow_enter());
    size_t before = span_counts().in_use_bytes;
    heap_make_room(room_everywhere, bytes);
    size_t made = before - span_counts().in_use_bytes;
    slow_leave();
    return made;
}

static void drop(int from, int step)
{
    for (int i = from; i < BLOCKS; i += step) {
        free(block[i]);
        block[i] = NULL;
    }
}

static void expect_whole(void)
{
    for (int i = 0; i < BLOCKS; i++)
        for (size_t k = 0; block[i] != NULL && k < BYTES; k += 500)
            EXPECT_EQ(block[i][k], (char)i);
}

int main(void)
{
    for (int i = 0; i < BLOCKS; i++)
        if ((block[i] = malloc(BYTES)) != NULL)
            memset(block[i], i, BYTES);
    for (int i = 1; i < KEPT_EVERY; i++)
        if (i != KEPT_EVERY / 2)
            drop(i, KEPT_EVERY);
    system_refuses = true;
    EXPECT_EQ(room_made_for(MORE_THAN_A_SUPERBLOCK), 0); /* there is a live block in each of them */
    const size_t made = room_made_for(SLICE_BYTES);
    EXPECT_MSG(made > (size_t)BLOCKS * BYTES / 2, "%zu bytes", made);
    EXPECT_EQ(room_made_for(SLICE_BYTES), 0);
    drop(KEPT_EVERY / 2, KEPT_EVERY);
    const size_t further = room_made_for(SLICE_BYTES);
    EXPECT_MSG(further > 0, "%zu bytes at first, then none", made);
    expect_whole();
    drop(0, KEPT_EVERY);
    EXPECT_EQ(room_made_for(MORE_THAN_A_SUPERBLOCK), 0);
    system_refuses = false; /* what the end of the region lacks may be opened now */
    EXPECT(room_made_for(MORE_THAN_A_SUPERBLOCK) > 0);
    expect_heaps_sound();
    return 0;
}
