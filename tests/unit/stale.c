/* SPDX-License-Identifier: MIT
 *
 * Stale pages: of a superblock made from memory that was in use, what is uncarved goes back to the system, on the
 * second pass or at once where everything is to go; what is carved stays, whoever carves meanwhile.
 */
#include "heap/stale.h"

#include <pthread.h>

#include "heap/region.h"
#include "inspect.h"
#include "os/os.h"
#include "unit.h"

#define BLOCK_BYTES (128ul << 10)
#define DIRTY_BYTES (12ul << 20)

static unsigned class;

static size_t purge(enum purge_what what, bool *changed)
{
    EXPECT(slow_enter());
    size_t bytes = heap_purge(what, changed);
    slow_leave();
    return bytes;
}

static size_t bytes_of(const struct superblock *s)
{
    return superblock_slices(s) * SLICE_BYTES;
}

static size_t resident_bytes(const struct superblock *s)
{
    static unsigned char there[4096];
    size_t bytes = bytes_of(s), pages = bytes / os_page_bytes, count = 0;
    EXPECT(pages <= sizeof there && mincore(superblock_start(s), bytes, there) == 0);
    for (size_t i = 0; i < pages; i++)
        count += there[i] & 1;
    return count * os_page_bytes;
}

/* A block in a superblock made from slices that a large block has left. */
static char *block_on_used_slices(void)
{
    bool changed;
    purge(purge_force, NULL);
    char *large = malloc(DIRTY_BYTES);
    EXPECT(large != NULL && region_contains(large));
    memset(large, 0xa5, DIRTY_BYTES);
    free(large);
    purge(purge_decay, &changed); /* marks the span; that is not the superblock's mark */
    char *block = malloc(BLOCK_BYTES);
    EXPECT(block != NULL && block >= large && block < large + DIRTY_BYTES);
    memset(block, 0x5a, BLOCK_BYTES);
    const struct superblock *s = superblock_of(block);
    EXPECT(s->class == class && is_stale(s));
    EXPECT(resident_bytes(s) == bytes_of(s));
    return block;
}

static void expect_bytes(const char *block, int value)
{
    for (size_t i = 0; i < BLOCK_BYTES; i++)
        EXPECT_MSG(block[i] == value, "byte %zu is 0x%x, not 0x%x", i, block[i] & 0xff, value & 0xff);
}

/* The rest of the superblock is there to be had, and is nobody else's. */
static void fill_the_rest(const struct superblock *s)
{
    static char *more[256];
    unsigned count = s->blocks;
    for (unsigned i = 0; i < count; i++) {
        EXPECT((more[i] = malloc(BLOCK_BYTES)) != NULL);
        memset(more[i], (int)(i & 0x7f), BLOCK_BYTES);
    }
    for (unsigned i = 0; i < count; i++) {
        expect_bytes(more[i], (int)(i & 0x7f));
        free(more[i]);
    }
    expect_heaps_sound();
}

static void goes_at_the_second_pass(void)
{
    char *block = block_on_used_slices();
    struct superblock *s = superblock_of(block);
    bool changed;
    purge(purge_decay, &changed);
    EXPECT(changed && is_stale(s));
    EXPECT_EQ(resident_bytes(s), bytes_of(s));

    EXPECT(purge(purge_decay, &changed) >= bytes_of(s) - 2 * BLOCK_BYTES);
    EXPECT(!is_stale(s));
    EXPECT(resident_bytes(s) <= 2 * BLOCK_BYTES);
    expect_bytes(block, 0x5a);
    fill_the_rest(s);
    expect_bytes(block, 0x5a);
    free(block);
}

static void goes_at_once_with_everything(void)
{
    char *block = block_on_used_slices();
    struct superblock *s = superblock_of(block);
    EXPECT(purge(purge_force, NULL) >= bytes_of(s) - 2 * BLOCK_BYTES);
    EXPECT(resident_bytes(s) <= 2 * BLOCK_BYTES);
    EXPECT_EQ(purge(purge_force, NULL), 0);
    expect_bytes(block, 0x5a);
    fill_the_rest(s);
    free(block);
}

static volatile bool stop;

static void dirty_slices(void)
{
    char *large = malloc(DIRTY_BYTES);
    EXPECT(large != NULL);
    for (size_t at = 0; at < DIRTY_BYTES; at += os_page_bytes)
        large[at] = 1;
    free(large);
}

/* Uses up superblocks made of slices that were in use a moment ago. */
static void *take_and_give(void *arg)
{
    (void)arg;
    static char *mine[64];
    while (!stop) {
        dirty_slices();
        for (size_t i = 0; i < ARRAY_LEN(mine); i++) {
            EXPECT((mine[i] = malloc(BLOCK_BYTES)) != NULL);
            memset(mine[i], (int)i, os_page_bytes);
        }
        for (size_t i = 0; i < ARRAY_LEN(mine); i++) {
            for (size_t at = 0; at < os_page_bytes; at++)
                EXPECT_MSG(mine[i][at] == (char)i, "block %zu lost byte %zu", i, at);
            free(mine[i]);
        }
    }
    return NULL;
}

static void others_carve_meanwhile(uint64_t ms)
{
    uint64_t end_ns = os_now_ns() + ms * 1000000;
    pthread_t thread;
    stop = false;
    EXPECT(pthread_create(&thread, NULL, take_and_give, NULL) == 0);
    while (os_now_ns() < end_ns)
        purge(purge_force, NULL);
    stop = true;
    EXPECT(pthread_join(thread, NULL) == 0);
    expect_heaps_sound();
}

int main(int argc, char **argv)
{
    unit_watchdog(120);
    unit_print_mode();
    class = size_class_of(BLOCK_BYTES);
    goes_at_the_second_pass();
    goes_at_once_with_everything();
    others_carve_meanwhile(unit_option(argc, argv, "--ms", 1500));
    return 0;
}
