/* SPDX-License-Identifier: MIT
 *
 * The scenes: what the heap looks like, and the malloc or free that is stopped half-way.
 */
#include "step_blocks.h"

#include "heap/purge.h"
#include "heap/remote.h"
#include "heap/span.h"
#include "inspect.h"
#include "step.h"
#include "unit.h"

/* ---- setting scenes ---- */

static struct superblock *active(unsigned c)
{
    return home->active[c];
}

/* Leaves `left` blocks on the active list. */
static void drain_to(unsigned c, size_t size, unsigned left)
{
    take(&pool_a, size);
    while (freelist_count(active(c)->freelist) != left)
        take(&pool_a, size);
}

static struct superblock *filled[4];

static unsigned held_of(const struct superblock *s)
{
    unsigned count = 0;
    for (unsigned n = 0; n < pool_a.count; n++)
        count += superblock_of(pool_a.held[n].block) == s;
    return count;
}

/* Fills active superblocks to the brim, each with enough blocks of A's; the last stays active. */
static void fill(unsigned c, size_t size, unsigned superblocks)
{
    const unsigned enough = 16;
    for (unsigned n = 0; n < superblocks; n++) {
        do
            take(&pool_a, size);
        while (active(c)->freelist != 0 || active(c)->uncarved != 0 || held_of(active(c)) < enough);
        filled[n] = active(c);
        EXPECT(n == 0 || filled[n] != filled[n - 1]);
    }
}

/* Where in A's pool a block of this superblock is; the pool's order changes as blocks leave it. */
static unsigned one_of(const struct superblock *s)
{
    for (unsigned n = 0; n < pool_a.count; n++)
        if (superblock_of(pool_a.held[n].block) == s)
            return n;
    FAIL("no block of the superblock is left");
}

static void lend(const struct superblock *s, unsigned count)
{
    while (count-- > 0)
        pass(&pool_a, &pool_b, one_of(s));
}

static void free_some(const struct superblock *s, unsigned count)
{
    while (count-- > 0)
        free(strike_out(&pool_a, one_of(s)));
}

static void give_intruder(unsigned n, size_t size)
{
    while (n-- > 0)
        take(&pool_b, size);
}

static void set_there_is_one(void)
{
    give_intruder(6, SMALL);
    drain_to(small, SMALL, 2);
}

static void set_last_one(void)
{
    give_intruder(6, SMALL);
    drain_to(small, SMALL, 1);
}

static void set_carve(void)
{
    give_intruder(6, SMALL);
    drain_to(small, SMALL, 0);
    EXPECT(active(small)->uncarved != 0);
}

static void set_carve_medium(void)
{
    give_intruder(3, MEDIUM);
    drain_to(medium, MEDIUM, 0);
    EXPECT(active(medium)->uncarved != 0);
}

/* The carved part is full and pages below it have been purged: the other way of carving. */
static void set_carve_hole(void)
{
    fill(small, SMALL, 1);
    const char *start = superblock_start(active(small));
    for (unsigned n = pool_a.count; n-- > 0;) {
        size_t offset = (size_t)(pool_a.held[n].block - start);
        if (offset >= 8192 && offset < 20480)
            free(strike_out(&pool_a, n));
    }
    EXPECT(slow_enter());
    heap_purge(purge_force, NULL);
    slow_leave();
    lend(filled[0], 5);
    if (active(small) == &empty_superblock) { /* listed now: brought back by the first malloc, with room for four */
        take(&pool_a, SMALL);
        drain_to(small, SMALL, 0);
    }
}

static void set_remote(void)
{
    fill(small, SMALL, 1);
    lend(filled[0], 6);
    for (unsigned n = 0; n < 3; n++)
        EXPECT_EQ(remote_push(filled[0], strike_out(&pool_a, 0)), remote_pushed);
}

static void set_listed(void)
{
    fill(small, SMALL, 2);
    free_some(filled[0], 12);
    lend(filled[0], 3);
    lend(filled[1], 3);
}

static void set_full(void)
{
    fill(small, SMALL, 1);
    lend(filled[0], 6);
}

static void set_full_medium(void)
{
    fill(medium, MEDIUM, 1);
    lend(filled[0], 4);
}

static struct superblock *half_used(unsigned c, size_t size, struct pool *pool, unsigned live)
{
    struct superblock *s = test_superblock_new(c);
    test_carve_all(s);
    for (unsigned n = 0; n < live; n++)
        enter(pool, test_take(s), size);
    return s;
}

static void set_global(void)
{
    fill(small, SMALL, 1);
    global_adopt(half_used(small, SMALL, &pool_b, 20));
}

static void set_inactive_neighbour(void)
{
    fill(small, SMALL, 1);
    lock_take(&elsewhere->lock);
    heap_relist(elsewhere, half_used(small, SMALL, &pool_b, 20));
    lock_release(&elsewhere->lock);
    elsewhere->activity = elsewhere->refills;
    for (unsigned c = 0; c < CLASS_COUNT; c++)
        elsewhere->activity += elsewhere->active[c]->freelist;
    elsewhere->slow_paths = (uint32_t)(elsewhere->refills + elsewhere->remote_frees);
    elsewhere->activity_since_ns = elsewhere->slow_paths_since_ns = 1;
}

static void set_pending(void)
{
    fill(small, SMALL, 3);
    for (unsigned n = 0; n < 2; n++)
        for (unsigned k = 0; k < 20; k++)
            if (remote_push(filled[n], strike_out(&pool_a, one_of(filled[n]))) == remote_pushed_armed)
                heap_push_pending(home, filled[n]);
    EXPECT(home->x_pending != 0);
    lend(filled[0], 2);
    lend(filled[1], 2);
    lend(filled[2], 2);
}

/* A's next free takes the first superblock to the next group; the intruder has blocks of it, too. */
static void set_step(void)
{
    fill(small, SMALL, 2);
    const struct superblock *s = filled[0];
    EXPECT(s != active(small) && s->group == group_nearly_full);
    while (freelist_count(s->freelist) + 1 != s->threshold)
        free_some(s, 1);
    lend(s, 4);
    unsigned n = one_of(s);
    struct held last = pool_a.held[pool_a.count - 1];
    pool_a.held[pool_a.count - 1] = pool_a.held[n];
    pool_a.held[n] = last;
}

/* One block in use, and as many empty superblocks beside it as a heap may keep: the next one empty is released. */
static void set_last_of_surplus(void)
{
    for (unsigned n = 0; n < 4; n++) {
        lock_take(&home->lock);
        heap_relist(home, half_used(small, SMALL, &pool_a, 0));
        lock_release(&home->lock);
    }
    lock_take(&home->lock);
    heap_relist(home, half_used(small, SMALL, &pool_a, 1));
    lock_release(&home->lock);
}

static void set_foreign(void)
{
    lock_take(&elsewhere->lock);
    heap_relist(elsewhere, half_used(small, SMALL, &pool_b, 6));
    lock_release(&elsewhere->lock);
    pass(&pool_b, &pool_a, 0);
}

static void set_later_slice(void)
{
    give_intruder(3, MEDIUM);
    do
        take(&pool_a, MEDIUM);
    while (slice_at(slice_of(pool_a.held[pool_a.count - 1].block))->kind != slice_tail);
}

static void set_purge(void)
{
    fill(small, SMALL, 2);
    free_some(filled[0], 40);
    free_some(filled[1], 10);
    lend(filled[0], 3);
    lend(filled[1], 3);
}

static void set_counter(void)
{
    count_from_zero();
    give_intruder(3, SMALL);
}

/* ---- performing ---- */

static void take_small(void)
{
    take(&pool_a, SMALL);
}

/* Interrupted each time, they must not need a superblock each. */
static void take_several(void)
{
    for (unsigned n = 0; n < 12; n++)
        take(&pool_a, SMALL);
}

static void take_medium(void)
{
    take(&pool_a, MEDIUM);
}

static void give_one(void)
{
    give(&pool_a);
}

static void give_and_take(void)
{
    give(&pool_a);
    take(&pool_a, SMALL);
}

static void grow_one(void)
{
    size_t size = pool_a.held[pool_a.count - 1].size;
    char *block = strike_out(&pool_a, pool_a.count - 1), first = block[0], last = block[size - 1];
    char *grown = realloc(block, 3 * size);
    EXPECT(grown != NULL && grown[0] == first && grown[size - 1] == last);
    enter(&pool_a, grown, 3 * size);
}

/* The primitives, one try each: what they did not do must not have happened. */
static void push_and_pop(void)
{
    struct superblock *s = superblock_of(pool_a.held[pool_a.count - 1].block);
    void *block = strike_out(&pool_a, pool_a.count - 1);
    enum hot_pushed pushed = hot_push(block, s);
    if (pushed == hot_pushed_notify)
        free_notify(s);
    else if (pushed != hot_pushed)
        enter(&pool_a, block, SMALL);
    void *popped = hot_pop(small);
    if (popped != NULL)
        enter(&pool_a, popped, SMALL);
}

const struct step_scene step_scene[] = {
    {"malloc: a block is there", set_there_is_one, take_small, false, true},
    {"malloc: the last one", set_last_one, take_small, false, true},
    {"malloc: carve", set_carve, take_small, false, true},
    {"malloc: carve, larger class", set_carve_medium, take_medium, false, true},
    {"malloc: carve a hole", set_carve_hole, take_small, false, true},
    {"malloc: remote frees", set_remote, take_small, false, true},
    {"malloc: a listed superblock", set_listed, take_small, false, true},
    {"malloc: a fresh superblock", set_full, take_small, false, true},
    {"malloc: several from a fresh superblock", set_full, take_several, false, true},
    {"malloc: a fresh superblock, larger class", set_full_medium, take_medium, false, true},
    {"malloc: from the global heap", set_global, take_small, false, true},
    {"malloc: from an inactive heap", set_inactive_neighbour, take_small, false, true},
    {"malloc: superblocks pending", set_pending, take_small, false, true},
    {"free: to the active superblock", set_there_is_one, give_one, false, true},
    {"free: up a step", set_step, give_one, false, true},
    {"free: the last of too many", set_last_of_surplus, give_one, false, true},
    {"free: of another heap", set_foreign, give_one, false, true},
    {"free: in a later slice", set_later_slice, give_one, false, true},
    {"free and malloc: up a step", set_step, give_and_take, false, true},
    {"realloc: grow", set_there_is_one, grow_one, false, true},
    {"purge", set_purge, purge_all, false, false},
    {"push and pop", set_there_is_one, push_and_pop, true, true},
    {"compare and store", set_counter, count_once, true, true},
};
const unsigned step_scene_count = ARRAY_LEN(step_scene);
