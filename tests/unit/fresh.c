/* SPDX-License-Identifier: MIT
 *
 * Fresh blocks: calloc of more than CLEARED_BYTES_MAX takes, where it can, a block nobody has had, and leaves it alone.
 * Whatever memory was before, dirty, purged or in part of either, what calloc returns is zero.
 */
#include "heap/purge.h"
#include "heap/remote.h"
#include "heap/span.h"
#include "inspect.h"
#include "os/os.h"
#include "unit.h"

#define BLOCKS_MAX 2048

static unsigned char *block[BLOCKS_MAX];

static void expect_zero(const unsigned char *p, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        EXPECT_MSG(p[i] == 0, "byte %zu of %zu is 0x%x", i, bytes, p[i]);
}

static void take_zero(unsigned count, size_t bytes)
{
    for (unsigned i = 0; i < count; i++)
        if (block[i] == NULL)
            EXPECT((block[i] = calloc(1, bytes)) != NULL);
}

static void take_dirty(unsigned count, size_t bytes)
{
    for (unsigned i = 0; i < count; i++)
        if (block[i] == NULL)
            EXPECT((block[i] = malloc(bytes)) != NULL);
}

/* Each is zero, and is the caller's alone. */
static void expect_all_zero_and_fill(unsigned count, size_t bytes)
{
    for (unsigned i = 0; i < count; i++) {
        expect_zero(block[i], bytes);
        memset(block[i], 0xa5, bytes);
    }
}

static void drop(unsigned count, unsigned kept_of)
{
    for (unsigned i = 0; i < count; i++)
        if (kept_of == 0 || i % kept_of != 0) {
            free(block[i]);
            block[i] = NULL;
        }
}

static size_t resident_pages(const unsigned char *p, size_t bytes)
{
    static unsigned char there[64];
    uintptr_t first = align_down((uintptr_t)p, os_page_bytes);
    size_t span = align_up((uintptr_t)p + bytes, os_page_bytes) - first, pages = span / os_page_bytes, count = 0;
    EXPECT(pages <= sizeof there && mincore((void *)first, span, there) == 0);
    for (size_t i = 0; i < pages; i++)
        count += there[i] & 1;
    return count;
}

static void fresh_blocks_are_not_touched(unsigned c)
{
    size_t bytes = size_class[c].bytes, pages = 0;
    unsigned count = size_class[c].blocks * 2u;
    EXPECT(slow_enter());
    heap_purge(purge_force, NULL); /* whatever free span it comes from is zero */
    slow_leave();
    take_zero(count, bytes);
    for (unsigned i = 0; i < count; i++)
        pages += resident_pages(block[i], bytes);
    /* The first page of each at most, where its next was; a quarter where that is all of a block's pages. */
    EXPECT_MSG(pages * os_page_bytes * 4 < count * bytes || pages * 4 < count * 5,
               "%zu pages of %u blocks of %zu bytes are there", pages, count, bytes);
    expect_all_zero_and_fill(count, bytes);
    drop(count, 0);
    take_zero(count, bytes); /* used memory now */
    expect_all_zero_and_fill(count, bytes);
    drop(count, 0);
    expect_heaps_sound();
}

/* More superblocks than a heap keeps empty become spans again, dirty ones. */
static void used_spans_are_cleared(unsigned c, unsigned other)
{
    unsigned count = size_class[c].blocks * 12u;
    EXPECT(count <= BLOCKS_MAX);
    take_dirty(count, size_class[c].bytes);
    for (unsigned i = 0; i < count; i++)
        memset(block[i], 0xa5, size_class[c].bytes);
    drop(count, 0);
    size_t dirty = span_counts().dirty_bytes;
    EXPECT(dirty >= size_class[other].slices * SLICE_BYTES);
    count = size_class[other].blocks * 6u;
    take_zero(count, size_class[other].bytes);
    EXPECT(span_counts().dirty_bytes < dirty);
    expect_all_zero_and_fill(count, size_class[other].bytes);
    drop(count, 0);
    expect_heaps_sound();
}

/* A purge leaves what live blocks' pages hold of their free neighbours. */
static void what_a_purge_left_is_cleared(unsigned c)
{
    size_t bytes = size_class[c].bytes;
    unsigned count = size_class[c].blocks * 2u;
    for (unsigned kept_of = 2; kept_of < 8; kept_of++) {
        take_zero(count, bytes);
        expect_all_zero_and_fill(count, bytes);
        drop(count, kept_of);
        heap_purge(purge_force, NULL);
        for (unsigned i = 0; i < count; i++)
            if (block[i] == NULL)
                expect_zero(block[i] = calloc(1, bytes), bytes);
        for (unsigned i = 0; i < count; i++)
            memset(block[i], 0xa5, bytes);
        drop(count, 0);
        heap_purge(purge_force, NULL);
    }
    expect_heaps_sound();
}

static struct superblock *fresh_active(struct heap *h, unsigned c)
{
    struct superblock *s = test_superblock_new(c);
    s->dirty = 0;
    superblock_set_owner(s, h);
    h->active[c] = s;
    return s;
}

static void *take_fresh(struct heap *h, unsigned c)
{
    lock_take(&h->lock);
    void *p = heap_take_fresh(h, c);
    lock_release(&h->lock);
    return p;
}

/* What was freed is used before what nobody had. */
static void fresh_blocks_come_last(unsigned c)
{
    struct heap *h = test_heap_new(true);
    EXPECT(take_fresh(h, c) == NULL); /* no superblock */
    struct superblock *s = fresh_active(h, c);
    test_heap_bind(h);
    void *first = take_fresh(h, c), *second = take_fresh(h, c);
    EXPECT(first == superblock_block(s, 0) && (char *)second == (char *)first + s->block_bytes);
    EXPECT_EQ(s->carved, 2);
    free(first);
    EXPECT(take_fresh(h, c) == NULL);
    EXPECT(calloc(1, s->block_bytes) == first);
    remote_push(s, second);
    EXPECT(take_fresh(h, c) == NULL);
    s->freelist = superblock_join(s, remote_take(s, false), s->freelist);
    EXPECT(calloc(1, s->block_bytes) == second);
    s->dirty = UINT64_MAX;
    EXPECT(take_fresh(h, c) == NULL);
    s->dirty = 0;
    unsigned count = 2;
    while (s->uncarved != 0) {
        EXPECT(take_fresh(h, c) != NULL);
        count += 1 + freelist_count(s->freelist);
        while (test_take(s) != NULL)
            ;
    }
    EXPECT_EQ(count, s->blocks);
    EXPECT(take_fresh(h, c) == NULL);
    expect_heaps_sound();
    test_heap_bind(NULL);
}

/* A unit may hold two blocks: the one that is left over is on the list. */
static void what_is_carved_beside_it_is_listed(unsigned c)
{
    struct heap *h = test_heap_new(true);
    struct superblock *s = fresh_active(h, c);
    unsigned listed = 0, taken = 0;
    test_heap_bind(h);
    while (s->uncarved != 0) {
        uint64_t *p = take_fresh(h, c);
        EXPECT(p != NULL && *p == 0);
        taken++;
        listed += freelist_count(s->freelist);
        expect_superblock_sound(s);
        while (test_take(s) != NULL)
            ;
    }
    EXPECT(listed > 0);
    EXPECT_EQ(taken + listed, s->blocks);
    expect_heaps_sound();
    test_heap_bind(NULL);
}

int main(void)
{
    unit_print_mode();
    unit_watchdog(60);
    fresh_blocks_are_not_touched(size_class_of(131072));
    fresh_blocks_are_not_touched(size_class_of(65536));
    used_spans_are_cleared(size_class_of(32768), size_class_of(20480));
    used_spans_are_cleared(size_class_of(12288), size_class_of(16384));
    used_spans_are_cleared(size_class_of(65536), size_class_of(98304));
    what_a_purge_left_is_cleared(size_class_of(13312));
    what_a_purge_left_is_cleared(size_class_of(9216));
    what_a_purge_left_is_cleared(size_class_of(40960));
    fresh_blocks_come_last(size_class_of(16384));
    fresh_blocks_come_last(size_class_of(98304));
    what_is_carved_beside_it_is_listed(size_class_of(3000));
    what_is_carved_beside_it_is_listed(size_class_of(700));
    return 0;
}
