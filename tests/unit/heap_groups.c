/* SPDX-License-Identifier: MIT
 *
 * A superblock's way through the fullness groups.  Relisted with any number of blocks in use it must be listed in the
 * group of that number, with the threshold at exactly the count where the next group begins; walked up by free() one
 * block at a time it must be in the right group after every single free; and whatever malloc and free do to a heap,
 * retiring and activating superblocks as they go, the lists must tell the truth at any moment.
 */
#include "heap/remote.h"
#include "inspect.h"
#include "unit.h"

static const size_t sizes[] = {64, 208, 576, 1000, 1100, 5000, 20000, 50000, 120000};

/* The free count at which a superblock with `free_now` free blocks leaves its group upwards. */
static unsigned threshold_expected(const struct superblock *s, unsigned free_now)
{
    unsigned uncarved = (unsigned)(s->blocks - s->carved);
    enum group now = group_expected(s->blocks, uncarved + free_now);
    for (unsigned n = free_now + 1; n <= s->carved; n++)
        if (group_expected(s->blocks, uncarved + n) != now)
            return n;
    return THRESHOLD_NEVER;
}

static void expect_listed_right(const struct heap *h, const struct superblock *s)
{
    unsigned free_now = freelist_count(s->freelist), available = (unsigned)(s->blocks - s->carved) + free_now;
    EXPECT(superblock_owner(s) == h);
    EXPECT_EQ(s->group, group_expected(s->blocks, available));
    EXPECT_EQ(s->threshold, threshold_expected(s, free_now));
    EXPECT_EQ(s->x_remote, REMOTE_ARMED);
    EXPECT(superblock_at_slice(h->class[s->class].head[s->group] - 1) == s);
    EXPECT_EQ(h->class[s->class].listed, 1);
    EXPECT_EQ(h->class[s->class].surplus, s->group == group_mostly_free || s->group == group_empty);
}

static void unlist(struct heap *h, struct superblock *s)
{
    lock_take(&h->lock);
    heap_list_remove(h, s);
    lock_release(&h->lock);
    superblock_clear_owner(s);
    s->x_remote = 0;
    EXPECT_EQ(h->class[s->class].listed, 0);
    EXPECT_EQ(h->class[s->class].surplus, 0);
}

/* Every number of blocks in use, with all, half or one carving's worth of the superblock carved. */
static void relisted_by_count(struct heap *h, unsigned c)
{
    struct superblock *s = test_superblock_new(c);
    void **block = unit_map(s->blocks * sizeof *block);
    while (true) {
        bool done = s->uncarved == 0;
        for (unsigned live = 0; live <= s->carved; live += s->carved > 200 && live % 8 == 3 ? 5 : 1) {
            for (unsigned i = 0; i < live; i++)
                block[i] = test_take(s);
            lock_take(&h->lock);
            heap_relist(h, s);
            lock_release(&h->lock);
            expect_listed_right(h, s);
            unlist(h, s);
            for (unsigned i = 0; i < live; i++)
                test_give(s, block[i]);
        }
        if (done)
            break;
        struct carving carving = superblock_carve(s, carve_some);
        s->freelist = superblock_join(s, carving.list, s->freelist);
        superblock_count_carving(s, carving);
    }
    munmap(block, s->blocks * sizeof *block);
    test_superblock_drop(s);
}

static void walked_up_by_free(struct heap *h, unsigned c, struct rng *rng)
{
    struct superblock *s = test_superblock_new(c);
    test_carve_all(s);
    unsigned blocks = s->blocks;
    void **block = unit_map(blocks * sizeof *block);
    for (unsigned i = 0; i < blocks; i++) {
        unsigned k = (unsigned)rng_below(rng, i + 1);
        block[i] = block[k];
        block[k] = test_take(s);
    }
    lock_take(&h->lock);
    heap_relist(h, s);
    lock_release(&h->lock);
    unsigned groups = 1;
    for (unsigned i = 0; i < blocks; i++) {
        enum group before = s->group;
        free(block[i]);
        EXPECT_EQ(freelist_count(s->freelist), i + 1);
        expect_listed_right(h, s);
        groups += s->group != before;
    }
    EXPECT_EQ(groups, group_count); /* all of them were passed through */
    unlist(h, s);
    munmap(block, blocks * sizeof *block);
    test_superblock_drop(s);
}

/* malloc and free at random, the number in use swinging up and down. */
static void driven_by_malloc(struct heap *h, unsigned c, struct rng *rng)
{
    const unsigned most = size_class[c].blocks * 21u;
    void **block = unit_map(most * sizeof *block);
    unsigned held = 0, retired = 0;
    for (int swing = 0; swing < 12; swing++) {
        unsigned aim = swing == 0       ? most
                       : swing % 2 == 0 ? (unsigned)rng_below(rng, most)
                                        : (unsigned)rng_below(rng, most / 4);
        for (unsigned step = 0; held != aim; step++) {
            bool up = held < aim ? rng_below(rng, 8) != 0 : rng_below(rng, 8) == 0;
            if (up && held < most) {
                const struct superblock *active = h->active[c];
                block[held] = malloc(size_class[c].bytes);
                EXPECT(block[held] != NULL);
                retired += h->active[c] != active;
                held++;
            } else if (!up && held > 0) {
                unsigned i = (unsigned)rng_below(rng, held);
                free(block[i]);
                block[i] = block[--held];
            }
            if (step % (most > 1000 ? 768 : 16) == 0) {
                expect_heaps_sound();
                EXPECT_EQ(class_inspect(c).live, held);
            }
        }
    }
    while (held > 0)
        free(block[--held]);
    EXPECT_EQ(class_inspect(c).live, 0);
    expect_heaps_sound();
    EXPECT(retired > 5);
    const struct class_lists *lists = &h->class[c];
    EXPECT_MSG(lists->listed <= max_size(16, lists->listed / 4) || h->surplus_slices <= h->retaken_slices,
               "%u empty superblocks are kept, %u slices, and %u were taken back", lists->listed, h->surplus_slices,
               h->retaken_slices);
    munmap(block, most * sizeof *block);
}

int main(void)
{
    unit_print_mode();
    unit_watchdog(120);
    struct rng rng = unit_rng();
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        unsigned c = size_class_of(sizes[i]);
        struct heap *h = test_heap_new(true);
        test_heap_bind(h);
        relisted_by_count(h, c);
        walked_up_by_free(h, c, &rng);
        driven_by_malloc(h, c, &rng);
        test_heap_bind(NULL);
    }
    return 0;
}
