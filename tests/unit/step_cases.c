/* SPDX-License-Identifier: MIT
 *
 * What the two threads do.  Every block is entered in a side table when it is handed out and struck out when it is given
 * back, by whoever does it; it carries a stamp at both ends; and the allocator is asked about it as any program may
 * (malloc_usable_size), because it must know a block from the moment it hands it out.
 */
#include "step.h"

#include <malloc.h>

#include "heap/purge.h"
#include "heap/span.h"
#include "inspect.h"
#include "unit.h"

#define SMALL 1000u   /* 64 blocks a superblock of one slice, four to a unit */
#define MEDIUM 26000u /* 19 blocks in eight slices */
#define POOL_MAX 512

/* Blocks out, of A and of the intruder. */
struct pool {
    unsigned count;
    struct held {
        char *block;
        size_t size;
    } held[POOL_MAX];
};
static struct pool a, i;
static struct heap *home, *elsewhere;
static unsigned small, medium;
static _Atomic unsigned char *out; /* by address / 16 */
static uint64_t counter;
static _Atomic uint64_t counted;

#define TABLE_BYTES ((size_t)1 << 28)

/* ---- blocks ---- */

static _Atomic unsigned char *flag_of(const void *block)
{
    size_t at = ((uintptr_t)block - hot.window_base) / 16;
    EXPECT_MSG(window_contains(block) && at < TABLE_BYTES, "%p is not from the window", block);
    return &out[at];
}

static void enter(struct pool *pool, void *block, size_t size)
{
    EXPECT(block != NULL && pool->count < POOL_MAX);
    if (atomic_exchange(flag_of(block), 1) != 0)
        FAIL("block %p handed out twice", block);
    size_t usable = malloc_usable_size(block);
    EXPECT_MSG(usable >= size, "block %p of %zu bytes has %zu", block, size, usable);
    char *bytes = block;
    memset(bytes, (int)((uintptr_t)block >> 4), 16);
    memset(bytes + size - 16, (int)((uintptr_t)block >> 4), 16);
    pool->held[pool->count++] = (struct held){block, size};
}

static void expect_stamped(const struct held *held)
{
    for (unsigned n = 0; n < 16; n++)
        EXPECT_MSG(held->block[n] == (char)((uintptr_t)held->block >> 4) &&
                       held->block[held->size - 16 + n] == (char)((uintptr_t)held->block >> 4),
                   "block %p in use was written to", (void *)held->block);
}

static void *strike_out(struct pool *pool, unsigned n)
{
    EXPECT(n < pool->count);
    struct held held = pool->held[n];
    expect_stamped(&held);
    pool->held[n] = pool->held[--pool->count];
    if (atomic_exchange(flag_of(held.block), 0) != 1)
        FAIL("block %p is not out", (void *)held.block);
    return held.block;
}

static void take(struct pool *pool, size_t size)
{
    enter(pool, malloc(size), size);
}

static void give(struct pool *pool)
{
    if (pool->count > 0)
        free(strike_out(pool, pool->count - 1));
}

static void pass(struct pool *from, struct pool *to, unsigned n)
{
    to->held[to->count++] = from->held[n];
    from->held[n] = from->held[--from->count];
}

/* ---- setting scenes ---- */

static struct superblock *active(unsigned c)
{
    return home->active[c];
}

/* Leaves `left` blocks on the active list. */
static void drain_to(unsigned c, size_t size, unsigned left)
{
    take(&a, size);
    while (word_count(active(c)->word) != left)
        take(&a, size);
}

static struct superblock *filled[4];

/* Fills active superblocks to the brim; the last stays active. */
static void fill(unsigned c, size_t size, unsigned superblocks)
{
    for (unsigned n = 0; n < superblocks; n++) {
        for (unsigned k = 0; k < size_class[c].blocks; k++)
            take(&a, size);
        filled[n] = active(c);
    }
    const struct superblock *s = active(c);
    EXPECT_MSG(s->word == 0 && s->uncarved == 0, "not filled: word %llx, uncarved %llx, %u of %u carved, %zu superblocks",
               (unsigned long long)s->word, (unsigned long long)s->uncarved, s->carved, s->blocks,
               class_inspect(c).superblocks);
}

/* Where in A's pool a block of this superblock is; the pool's order changes as blocks leave it. */
static unsigned one_of(const struct superblock *s)
{
    for (unsigned n = 0; n < a.count; n++) {
        const struct superblock *in = descriptor_of(a.held[n].block);
        if (in == s || (in->kind == slice_tail && descriptor_of_slice(in->next) == s))
            return n;
    }
    FAIL("no block of the superblock is left");
}

static void lend(const struct superblock *s, unsigned count)
{
    while (count-- > 0)
        pass(&a, &i, one_of(s));
}

static void free_some(const struct superblock *s, unsigned count)
{
    while (count-- > 0)
        free(strike_out(&a, one_of(s)));
}

static void give_intruder(unsigned n, size_t size)
{
    while (n-- > 0)
        take(&i, size);
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
    for (unsigned n = a.count; n-- > 0;) {
        size_t offset = (size_t)(a.held[n].block - start);
        if (offset >= 8192 && offset < 20480)
            free(strike_out(&a, n));
    }
    EXPECT(slow_enter());
    heap_purge(purge_everything, NULL);
    slow_leave();
    lend(filled[0], 5);
    if (active(small) == &empty_superblock) { /* listed now: brought back by the first malloc, with room for four */
        take(&a, SMALL);
        drain_to(small, SMALL, 0);
    }
}

static void set_remote(void)
{
    fill(small, SMALL, 1);
    lend(filled[0], 6);
    for (unsigned n = 0; n < 3; n++)
        EXPECT_EQ(remote_push(filled[0], strike_out(&a, 0)), remote_pushed);
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
    global_adopt(half_used(small, SMALL, &i, 20));
}

static void set_quiet_neighbour(void)
{
    fill(small, SMALL, 1);
    lock_take(&elsewhere->lock);
    heap_settle(elsewhere, half_used(small, SMALL, &i, 20));
    lock_release(&elsewhere->lock);
    elsewhere->pulse = elsewhere->refills;
    for (unsigned c = 0; c < CLASS_COUNT; c++)
        elsewhere->pulse += elsewhere->active[c]->word;
    elsewhere->pulse_since_ns = 1;
}

static void set_posted(void)
{
    fill(small, SMALL, 3);
    for (unsigned n = 0; n < 2; n++)
        for (unsigned k = 0; k < 20; k++)
            if (remote_push(filled[n], strike_out(&a, one_of(filled[n]))) == remote_pushed_armed)
                heap_post(home, filled[n]);
    EXPECT(home->x_mailbox != 0);
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
    while (word_count(s->word) + 1 != s->notify_at)
        free_some(s, 1);
    lend(s, 4);
    unsigned n = one_of(s);
    struct held last = a.held[a.count - 1];
    a.held[a.count - 1] = a.held[n];
    a.held[n] = last;
}

/* One block in use, and as many empty superblocks beside it as a heap may keep: the next one empty is released. */
static void set_last_of_surplus(void)
{
    for (unsigned n = 0; n < 4; n++) {
        lock_take(&home->lock);
        heap_settle(home, half_used(small, SMALL, &a, 0));
        lock_release(&home->lock);
    }
    lock_take(&home->lock);
    heap_settle(home, half_used(small, SMALL, &a, 1));
    lock_release(&home->lock);
}

static void set_foreign(void)
{
    lock_take(&elsewhere->lock);
    heap_settle(elsewhere, half_used(small, SMALL, &i, 6));
    lock_release(&elsewhere->lock);
    pass(&i, &a, 0);
}

static void set_later_slice(void)
{
    give_intruder(3, MEDIUM);
    for (unsigned n = 0; n < 9; n++)
        take(&a, MEDIUM);
    EXPECT(descriptor_of(a.held[a.count - 1].block)->kind == slice_tail);
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
    counter = counted = 0;
    give_intruder(3, SMALL);
}

/* ---- performing ---- */

static void take_small(void)
{
    take(&a, SMALL);
}

static void take_medium(void)
{
    take(&a, MEDIUM);
}

static void give_one(void)
{
    give(&a);
}

static void give_and_take(void)
{
    give(&a);
    take(&a, SMALL);
}

static void grow_one(void)
{
    size_t size = a.held[a.count - 1].size;
    char *block = strike_out(&a, a.count - 1), first = block[0], last = block[size - 1];
    char *grown = realloc(block, 3 * size);
    EXPECT(grown != NULL && grown[0] == first && grown[size - 1] == last);
    enter(&a, grown, 3 * size);
}

static void purge_all(void)
{
    if (slow_enter()) {
        heap_purge(purge_everything, NULL);
        slow_leave();
    }
}

static void count_once(void)
{
    enum rcs_result result;
    int tries = 0;
    do {
        uint64_t old = __atomic_load_n(&counter, __ATOMIC_RELAXED);
        result = rcs_compare_and_store(home, &counter, old, &counter, old + 1);
    } while ((result == rcs_changed || result == rcs_aborted) && ++tries < 30);
    counted += result == rcs_done;
}

/* The primitives, one try each: what they did not do must not have happened. */
static void push_and_pop(void)
{
    struct superblock *s = descriptor_of(a.held[a.count - 1].block);
    void *block = strike_out(&a, a.count - 1);
    enum hot_pushed pushed = hot_push(block, s);
    if (pushed == hot_pushed_notify)
        free_notify(s);
    else if (pushed != hot_pushed)
        enter(&a, block, SMALL);
    void *popped = hot_pop(small);
    if (popped != NULL)
        enter(&a, popped, SMALL);
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
    {"malloc: a fresh superblock, larger class", set_full_medium, take_medium, false, true},
    {"malloc: from the global heap", set_global, take_small, false, true},
    {"malloc: from a quiet heap", set_quiet_neighbour, take_small, false, true},
    {"malloc: mail", set_posted, take_small, false, true},
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

/* ---- intruding ---- */

static void intrude_take(void)
{
    for (unsigned n = 0; n < 3; n++)
        take(&i, SMALL);
    give(&i);
}

static void intrude_give(void)
{
    for (unsigned n = 0; n < 3; n++)
        give(&i);
}

static void intrude_swap(void)
{
    give(&i);
    give(&i);
    take(&i, SMALL);
    take(&i, SMALL);
    take(&i, MEDIUM);
    give(&i);
}

static void intrude_drain(void)
{
    for (unsigned n = 0; n < 70; n++)
        take(&i, SMALL);
    for (unsigned n = 0; n < 35; n++)
        give(&i);
}

static void intrude_count(void)
{
    if (sync_mode == sync_rcs)
        for (unsigned n = 0; n < 3; n++)
            count_once();
    give(&i);
    take(&i, SMALL);
}

/* As a thread on another cid, which has come and gone. */
static void intrude_from_elsewhere(void)
{
    if (sync_mode == sync_rcs)
        test_heap_bind(elsewhere);
    intrude_swap();
    intrude_give();
    take(&i, SMALL);
    if (sync_mode == sync_rcs)
        test_heap_bind(home);
}

/* A finds itself on another heap when it goes on. */
static void intrude_and_move(void)
{
    intrude_give();
    if (sync_mode == sync_rcs)
        test_heap_bind(elsewhere);
    take(&i, SMALL);
}

const struct step_intruder step_intruder[] = {
    {"mallocs", intrude_take, true},
    {"frees", intrude_give, true},
    {"both", intrude_swap, true},
    {"many mallocs", intrude_drain, true},
    {"counts", intrude_count, true},
    {"purges", purge_all, false},
    {"acts from another cid", intrude_from_elsewhere, false},
    {"moves the thread", intrude_and_move, false},
};
const unsigned step_intruder_count = ARRAY_LEN(step_intruder);

/* ---- afterwards ---- */

/* Blocks out that are of this class (and not from the space for emergencies). */
static size_t out_of_class(const struct pool *pool, unsigned c)
{
    size_t n = 0;
    for (unsigned k = 0; k < pool->count; k++) {
        const struct superblock *s = descriptor_of(pool->held[k].block);
        if (s->kind == slice_tail)
            s = descriptor_of_slice(s->next);
        n += s->kind == slice_superblock && s->class == c;
        expect_stamped(&pool->held[k]);
    }
    return n;
}

void step_verify(void)
{
    for (unsigned c = small; c <= medium; c++)
        EXPECT_EQ(class_inspect(c).live, out_of_class(&a, c) + out_of_class(&i, c));
    EXPECT_EQ(counter, counted);
    test_heap_bind(home);
    expect_heaps_sound();
    while (a.count > 0)
        give(&a);
    while (i.count > 0)
        give(&i);
    for (unsigned c = small; c <= medium; c++)
        EXPECT_EQ(class_inspect(c).live, 0);
    /* Both heaps' mail is settled, then everything empty goes: the next scene starts from nothing. */
    lock_take(&home->lock);
    heap_drain(home);
    lock_release(&home->lock);
    test_heap_bind(elsewhere);
    lock_take(&elsewhere->lock);
    heap_drain(elsewhere);
    lock_release(&elsewhere->lock);
    test_heap_bind(home);
    purge_all();
    expect_heaps_sound();
    for (unsigned c = small; c <= medium; c++)
        EXPECT_EQ(class_inspect(c).superblocks, 0);
}

void step_prepare(void)
{
    out = unit_map(TABLE_BYTES);
    small = size_class_of(SMALL);
    medium = size_class_of(MEDIUM);
    home = test_heap_new(true);
    elsewhere = test_heap_new(true);
    test_heap_bind(home);
}
