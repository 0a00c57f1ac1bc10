/* SPDX-License-Identifier: MIT
 *
 * What a heap has too much of goes to the global heap or back to the spans, and comes from there again, fullest first:
 * the mechanism behind the bound on blowup.
 */
#include "heap/outbox.h"
#include "heap/pass.h"
#include "heap/span.h"
#include "inspect.h"
#include "unit.h"

/* Sixteen superblocks, but not more than 2 MiB of them, or one. */
static size_t surplus_floor(unsigned c)
{
    const size_t fit = ((size_t)2 << 20) / (size_class[c].slices * SLICE_BYTES);
    return fit > 16 ? 16 : fit < 1 ? 1 : fit;
}

static size_t bound(const struct heap *h, unsigned c)
{
    return max_size(surplus_floor(c), h->class[c].listed / 4);
}

/* Another heap, which looks for memory. */
static const struct heap elsewhere = {.number = 77};

/* With another heap in want. */
static void relist(struct heap *h, struct superblock *s)
{
    global_want(&elsewhere, s->class);
    lock_take(&h->lock);
    heap_relist(h, s);
    lock_release(&h->lock);
}

/* A detached superblock of `slices` slices with `live` blocks in use, which are appended to `block`. */
static struct superblock *short_with_live(unsigned c, unsigned slices, unsigned live, void **block, unsigned *held)
{
    struct superblock *s = test_superblock_of(c, slices);
    test_carve_all(s);
    for (unsigned i = 0; i < live; i++)
        block[(*held)++] = test_take(s);
    return s;
}

/* The same, as long as its class says. */
static struct superblock *with_live(unsigned c, unsigned live, void **block, unsigned *held)
{
    return short_with_live(c, size_class[c].slices, live, block, held);
}

static size_t superblocks_of(const struct heap *h, unsigned c)
{
    size_t n = 0;
    for (uint32_t slice = 0; region_contains(slice_address(slice)); slice++) {
        const struct superblock *s = superblock_at_slice(slice);
        n += s->slice.kind == slice_superblock && s->class == c && superblock_owner(s) == h;
    }
    return n;
}

static void surplus_is_passed_on(struct heap *h, unsigned c)
{
    enum { count = 40 };
    void *block[count];
    unsigned held = 0;
    for (unsigned i = 0; i < count; i++) { /* one block in use each: mostly free */
        relist(h, with_live(c, 1, block, &held));
        EXPECT(h->class[c].surplus <= bound(h, c));
        EXPECT_EQ(superblocks_of(h, c) + superblocks_of(global_heap_of(c), c), i + 1);
    }
    EXPECT(superblocks_of(global_heap_of(c), c) >= count - surplus_floor(c));
    expect_heaps_sound();
    EXPECT_EQ(class_inspect(c).live, count);
    for (unsigned i = 0; i < count; i++) {
        EXPECT(block_find(block[i]).kind == block_superblock);
        free(block[i]);
    }
    EXPECT_EQ(class_inspect(c).live, 0);
    /* The global heap learns of its emptied ones when it is used next, and lets go of what exceeds its own bound. */
    struct superblock *s = global_take(c, heap_find_fullest);
    EXPECT(s != NULL && superblock_owner(s) == NULL);
    EXPECT(superblocks_of(global_heap_of(c), c) <= surplus_floor(c));
    relist(h, s);
    expect_heaps_sound();
}

static void relist_unwanted(struct heap *h, struct superblock *s)
{
    lock_take(&h->lock);
    heap_relist(h, s);
    lock_release(&h->lock);
}

/* What no other heap looks for stays, however much it is; who looks gets one each time. */
static void surplus_stays_unless_wanted(struct heap *h, unsigned c)
{
    enum { count = 40 };
    void *block[count];
    unsigned held = 0;
    global_want(h, c); /* its own wants are none */
    size_t global = superblocks_of(global_heap_of(c), c);
    for (unsigned i = 0; i < count - 3; i++)
        relist_unwanted(h, with_live(c, 1, block, &held));
    EXPECT_EQ(superblocks_of(global_heap_of(c), c), global);
    size_t own = superblocks_of(h, c);
    EXPECT(own >= count - 3 && h->class[c].surplus >= count - 3);
    for (unsigned i = 0; i < 3; i++) {
        global_want(&elsewhere, c);
        relist_unwanted(h, with_live(c, 1, block, &held));
        EXPECT_EQ(superblocks_of(h, c), own); /* it, or another */
    }
    expect_heaps_sound();
    while (held > 0)
        free(block[--held]);
    EXPECT_EQ(class_inspect(c).live, 0);
    expect_heaps_sound();
}

static void empty_ones_become_spans_again(struct heap *h, unsigned c)
{
    void *none[1];
    unsigned held = 0;
    size_t before = span_counts().in_use_bytes, each = size_class[c].slices * SLICE_BYTES;
    size_t there = class_inspect(c).superblocks;
    for (int i = 0; i < 40; i++) {
        relist(h, with_live(c, 0, none, &held));
        EXPECT(h->class[c].surplus <= bound(h, c));
    }
    size_t kept = class_inspect(c).superblocks;
    EXPECT(kept <= there + surplus_floor(c));
    EXPECT_EQ(span_counts().in_use_bytes - before, (kept - there) * each);
    expect_heaps_sound();
}

/* A heap of many superblocks in use may keep a quarter of them. */
static void a_large_heap_keeps_a_quarter(struct heap *h, unsigned c)
{
    enum { count = 80 };
    unsigned held = 0, blocks = size_class[c].blocks;
    void **block = unit_map(count * 2ul * blocks * sizeof *block);
    size_t empty = h->class[c].surplus;
    for (unsigned i = 0; i < count; i++)
        relist(h, with_live(c, blocks, block, &held));
    EXPECT_EQ(h->class[c].surplus, empty);
    unsigned in_use = held;
    for (unsigned i = 0; i < count; i++)
        relist(h, with_live(c, 1, block, &held));
    EXPECT(h->class[c].surplus > surplus_floor(c));
    EXPECT(h->class[c].surplus <= bound(h, c));
    EXPECT(superblocks_of(h, c) + superblocks_of(global_heap_of(c), c) >= 2 * count); /* all that are in use */
    EXPECT_EQ(class_inspect(c).live, held);
    while (held > in_use)
        free(block[--held]);
    while (held > 0)
        free(block[--held]);
    EXPECT_EQ(class_inspect(c).live, 0);
    expect_heaps_sound();
    munmap(block, count * 2ul * blocks * sizeof *block);
}

static unsigned live_of(const struct superblock *s)
{
    return s->carved - freelist_count(s->freelist);
}

static void the_fullest_comes_first(unsigned c)
{
    enum { count = 9 };
    unsigned held = 0, blocks = size_class[c].blocks;
    void **block = unit_map(count * (size_t)blocks * sizeof *block);
    static const unsigned tenths[count] = {3, 9, 0, 5, 1, 8, 10, 6, 4};
    for (unsigned i = 0; i < count; i++)
        global_adopt(with_live(c, blocks * tenths[i] / 10, block, &held));
    EXPECT_EQ(global_heap_of(c)->class[c].listed, count);
    expect_heaps_sound();
    struct superblock *taken[count];
    unsigned n = 0;
    for (struct superblock *s; (s = global_take(c, heap_find_fullest)) != NULL;) {
        EXPECT(n < count && superblock_owner(s) == NULL && s->group == group_none);
        taken[n++] = s;
        if (n > 1) {
            enum group before = group_expected(blocks, blocks - live_of(taken[n - 2]));
            enum group now = group_expected(blocks, blocks - live_of(s));
            EXPECT_MSG(now >= before || now == group_nearly_full, "group %d after group %d", (int)now, (int)before);
        }
    }
    EXPECT_EQ(n, count - 1); /* the full one has nothing to give */
    EXPECT_EQ(global_heap_of(c)->class[c].listed, 1);
    for (unsigned i = 0; i < n; i++)
        global_adopt(taken[i]);
    while (held > 0)
        free(block[--held]);
    EXPECT_EQ(class_inspect(c).live, 0);
    munmap(block, count * (size_t)blocks * sizeof *block);
}

/* Blocks that are not the caller's heap's wait in its outbox otherwise. */
static void send_what_was_freed(void)
{
    bool ignored = false;
    pass_begin();
    outboxes_send(true, &ignored);
    pass_end();
}

/* A full superblock of the global heap whose blocks come back is found again. */
static void frees_to_the_global_heap_are_noticed(unsigned c)
{
    unsigned held = 0, blocks = size_class[c].blocks;
    void **block = unit_map((size_t)blocks * sizeof *block);
    while (global_take(c, heap_find_fullest) != NULL)
        ; /* their memory is lost to this test, nothing else */
    struct superblock *s = with_live(c, blocks, block, &held);
    global_adopt(s);
    EXPECT_EQ(s->group, group_nearly_full);
    EXPECT(global_take(c, heap_find_fullest) == NULL);
    free(block[--held]);
    send_what_was_freed();
    EXPECT(global_take(c, heap_find_fullest) == s);
    global_adopt(s);
    while (held > 0)
        free(block[--held]);
    send_what_was_freed();
    EXPECT(global_take(c, heap_find_fullest) == s);
    lock_take(&global_heap_of(c)->lock);
    EXPECT_EQ(heap_collect(global_heap_of(c), s), rcs_done);
    lock_release(&global_heap_of(c)->lock);
    EXPECT_EQ(freelist_count(s->freelist), blocks);
    EXPECT(superblock_check_list(s, s->freelist) == NULL);
    test_superblock_drop(s);
    munmap(block, (size_t)blocks * sizeof *block);
}

/* A heap that has nothing takes from the global heap before it takes fresh memory. */
static void a_refill_takes_from_the_global_heap(unsigned c)
{
    struct heap *h = test_heap_new(true);
    unsigned held = 0, blocks = size_class[c].blocks;
    void **block = unit_map((size_t)blocks * sizeof *block);
    struct superblock *s = with_live(c, blocks / 2, block, &held);
    global_adopt(s);
    test_heap_bind(h);
    void *p = malloc(size_class[c].bytes);
    EXPECT(p != NULL);
    EXPECT(h->active[c] == s && superblock_owner(s) == h);
    EXPECT((char *)p >= superblock_block(s, 0) && (char *)p < superblock_block(s, blocks));
    expect_heaps_sound();
    free(p);
    while (held > 0)
        free(block[--held]);
    EXPECT_EQ(class_inspect(c).live, 0);
    test_heap_bind(NULL);
    munmap(block, (size_t)blocks * sizeof *block);
}

/* The active superblock has room that was never touched.  Whether it stays so, and malloc goes back to another one of
 * the heap that has so many blocks free.  `shorts` others, of one slice, are listed before it: they are fuller, and
 * have too few. */
static bool comes_before_carving(unsigned c, unsigned free_blocks, unsigned shorts)
{
    struct heap *h = test_heap_new(true);
    unsigned held = 0, blocks = size_class[c].blocks;
    void **block = unit_map(2ul * blocks * sizeof *block);
    struct superblock *active = test_superblock_new(c), *s;
    active->dirty = active->uncarved; /* large blocks that nobody has had are taken before all else */
    superblock_set_owner(active, h);
    h->active[c] = active;
    relist(h, s = with_live(c, blocks - free_blocks, block, &held));
    for (unsigned i = 0; i < shorts; i++)
        relist(h, short_with_live(c, 1, SLICE_BYTES / size_class[c].bytes * 8 / 10, block, &held));
    EXPECT_EQ(h->class[c].listed, 1 + shorts);
    test_heap_bind(h);
    void *p = malloc(size_class[c].bytes);
    EXPECT(p != NULL);
    bool comes = superblock_of(p) == s;
    EXPECT(comes || superblock_of(p) == active);
    EXPECT_EQ(active->carved == 0, comes);
    free(p);
    while (held > 0)
        free(block[--held]);
    expect_heaps_sound();
    test_heap_bind(NULL);
    munmap(block, 2ul * blocks * sizeof *block);
    return comes;
}

static void what_is_an_eighth_free_comes_before_carving(unsigned c)
{
    EXPECT(!comes_before_carving(c, size_class[c].blocks * 10 / 100, 0));
    EXPECT(comes_before_carving(c, size_class[c].blocks * 15 / 100, 0));
}

/* Malloc would soon be here again. */
static void a_few_blocks_do_not(void)
{
    const unsigned c = size_class_of(100000), enough = (1u << 20) / size_class[c].bytes + 1;
    EXPECT(enough > size_class[c].blocks / 4u + 1 && enough < 16);
    EXPECT(!comes_before_carving(c, enough - 1, 0));
    EXPECT(comes_before_carving(c, enough, 0));
}

/* Nor do they hide another superblock that has enough. */
static void a_few_blocks_hide_none(unsigned c)
{
    EXPECT(comes_before_carving(c, size_class[c].blocks * 15 / 100, 3));
    EXPECT(comes_before_carving(c, size_class[c].blocks * 60 / 100, 3));
    EXPECT(!comes_before_carving(c, size_class[c].blocks * 10 / 100, 3));
}

int main(void)
{
    unit_print_mode();
    unit_watchdog(120);
    static const size_t sizes[] = {200, 1000, 3000, 30000, 100000};
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        unsigned c = size_class_of(sizes[i]);
        struct heap *h = test_heap_new(true);
        test_heap_bind(h);
        surplus_is_passed_on(h, c);
        surplus_stays_unless_wanted(h, c);
        empty_ones_become_spans_again(h, c);
        a_large_heap_keeps_a_quarter(h, c);
        test_heap_bind(NULL);
    }
    the_fullest_comes_first(size_class_of(700));
    the_fullest_comes_first(size_class_of(11000));
    frees_to_the_global_heap_are_noticed(size_class_of(400));
    frees_to_the_global_heap_are_noticed(size_class_of(6000));
    a_refill_takes_from_the_global_heap(size_class_of(800));
    a_refill_takes_from_the_global_heap(size_class_of(15000));
    what_is_an_eighth_free_comes_before_carving(size_class_of(500));
    what_is_an_eighth_free_comes_before_carving(size_class_of(5000));
    a_few_blocks_do_not();
    a_few_blocks_hide_none(size_class_of(5000));
    return 0;
}
