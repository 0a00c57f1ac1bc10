/* SPDX-License-Identifier: MIT
 *
 * Heaps of cids that became inactive: taking one superblock, exchanging two cids' heaps, and a thread that finds itself
 * on another cid and brings its heap along.  Cids cannot be had at will, so the bindings are set by hand, as if another
 * thread had run there.
 */
#include <sched.h>

#include "inspect.h"
#include "os/os.h"
#include "unit.h"

/* In cpu mode the slot is the cpu. */
static void stay_on_this_cpu(void)
{
    cpu_set_t here;
    CPU_ZERO(&here);
    CPU_SET(sched_getcpu(), &here);
    EXPECT_EQ(sched_setaffinity(0, sizeof here, &here), 0);
}

static unsigned far_slot = 40; /* a cid nobody here will ever run on; each test takes the next */

static void relist(struct heap *h, struct superblock *s)
{
    lock_take(&h->lock);
    heap_relist(h, s);
    lock_release(&h->lock);
}

/* Longer than any heap must have been still to be called inactive, or at rest. */
static void let_it_become_quiet(void)
{
    const struct timespec pause = {.tv_nsec = 15000000};
    nanosleep(&pause, NULL);
}

/* As a look at a heap without blocks would leave it. */
static void looked_at_long_ago(struct heap *h)
{
    h->slow_paths = h->activity = h->refills;
    h->slow_paths_since_ns = h->activity_since_ns = 1;
}

/* By as many looks as it takes to come round. */
static struct superblock *take_from_resting(struct heap *h, unsigned c)
{
    struct superblock *s = NULL;
    for (unsigned i = 0; s == NULL && i <= heap_total / 8; i++)
        s = heap_take_from_resting(h, c);
    return s;
}

static void a_resting_heap_is_stolen_from(unsigned c)
{
    struct heap *h = test_heap_new(true), *other = test_heap_new(true);
    struct superblock *s = test_superblock_new(c);
    test_carve_all(s);
    void *block = test_take(s);
    relist(other, s);
    other->refills = 1; /* since the last look, which was never */
    EXPECT(take_from_resting(h, c) == NULL);
    let_it_become_quiet();
    lock_take(&other->lock);
    EXPECT(take_from_resting(h, c) == NULL); /* somebody is in there */
    lock_release(&other->lock);
    EXPECT(take_from_resting(other, c) == NULL); /* not from oneself */
    EXPECT(take_from_resting(h, c) == s);
    EXPECT(superblock_owner(s) == NULL && s->group == group_none);
    EXPECT_EQ(other->class[c].listed, 0);
    EXPECT(take_from_resting(h, c) == NULL);
    relist(h, s);
    free(block); /* finds its superblock wherever it is now */
    EXPECT_EQ(class_inspect(c).live, 0);
    expect_heaps_sound();

    /* A heap that goes on working is left alone. */
    s = test_superblock_new(c);
    relist(other, s);
    let_it_become_quiet();
    other->refills++;
    EXPECT(take_from_resting(h, c) == NULL);
    expect_heaps_sound();
}

static void a_refill_takes_from_others_before_it_grows(unsigned c)
{
    struct heap *h = test_heap_new(true), *other = test_heap_new(true);
    struct superblock *s = test_superblock_new(c);
    test_carve_all(s);
    unsigned blocks = s->blocks;
    void **held = unit_map(blocks * sizeof *held);
    for (unsigned i = 0; i < blocks / 2; i++)
        held[i] = test_take(s);
    relist(other, s);
    let_it_become_quiet();
    EXPECT(take_from_resting(h, size_class_of(16)) == NULL); /* has nothing of the class */
    test_heap_bind(h);
    looked_at_long_ago(other);
    h->take_at = other->number - 1;
    void *p = malloc(size_class[c].bytes);
    EXPECT(p != NULL);
    EXPECT_MSG(h->active[c] == s, "fresh memory was taken while a heap at rest had some");
    EXPECT(superblock_owner(s) == h);
    free(p);
    for (unsigned i = 0; i < blocks / 2; i++)
        free(held[i]);
    EXPECT_EQ(class_inspect(c).live, 0);
    expect_heaps_sound();
    test_heap_bind(NULL);
    munmap(held, blocks * sizeof *held);
}

/* Its thread computes; what is pending on it meanwhile is of no use to it, and is worth more than fresh memory. */
static void what_came_back_to_a_resting_heap_is_swept(unsigned c)
{
    const uint64_t rest_ns = 2000000; /* far less than would make it inactive */
    struct heap *h = test_heap_new(true), *other = test_heap_new(true);
    struct superblock *s = test_superblock_new(c), *active = test_superblock_new(c + 1);
    test_carve_all(s);
    test_carve_all(active);
    superblock_set_owner(active, other);
    other->active[c + 1] = active;
    looked_at_long_ago(other);
    superblock_set_owner(s, other);
    heap_push_pending(other, s);
    other->slow_paths_since_ns = os_now_ns() - rest_ns;
    void *block = test_take(active); /* without a slow path */
    h->pending_at = other->number - 1;
    lock_take(&h->lock);
    EXPECT(heap_take_pending_of_resting(h));
    lock_release(&h->lock);
    EXPECT(superblock_owner(s) == h);
    EXPECT(superblock_owner(active) == other);
    test_give(active, block);
    expect_heaps_sound();
}

/* What was pending elsewhere is on a list, or pending, whatever happens to the refill that took it: here its thread
 * finds itself on another cid at the next section. */
static void a_swept_superblock_is_not_lost(unsigned c)
{
    struct heap *h = test_heap_new(true), *other = test_heap_new(true);
    struct superblock *s = test_superblock_new(c);
    test_carve_all(s);
    superblock_set_owner(s, other);
    heap_push_pending(other, s);
    looked_at_long_ago(other);
    h->pending_at = other->number - 1;
    lock_take(&h->lock);
    EXPECT_EQ(heap_refill(h, c), refill_moved); /* no cid is h's */
    lock_release(&h->lock);
    EXPECT(superblock_owner(s) == h);
    expect_heaps_sound();
}

/* ---- exchanges ---- */

static struct heap *bound_to_far_slot(void)
{
    struct heap *h = test_heap_new(true);
    unsigned slot = ++far_slot;
    EXPECT(slot < slot_count && heap_of_cid[slot] == &empty_heap);
    h->x_slot = slot;
    heap_of_cid[slot] = h;
    return h;
}

static void expect_bound(const struct heap *h, unsigned slot)
{
    EXPECT(heap_of_cid[slot] == h);
    EXPECT_EQ(h->x_slot, slot);
}

/* The next free of a block of another heap is one at which heaps look around. */
static void look_now(struct heap *h, struct heap *other)
{
    h->remote_frees = 63;
    EXPECT(heap_wants_reclaim(h, other, 1));
    heap_reclaim_if_inactive(h, other);
}

/* Any active list that changes is a sign of life. */
static void a_heap_whose_active_list_changes_is_not_exchanged(unsigned c)
{
    struct heap *mine = heap_here(), *other = bound_to_far_slot();
    unsigned slot = sync_slot();
    struct superblock *active = test_superblock_new(c);
    test_carve_all(active);
    superblock_set_owner(active, other);
    other->active[c] = active;
    other->class[CLASS_COUNT - 1].listed = 100000; /* looks the larger one */
    other->refills = 7;
    for (int i = 0; i < 2; i++) { /* the first look finds it changed, the second its lists */
        look_now(mine, other);
        let_it_become_quiet();
    }
    void *block = test_take(active);
    look_now(mine, other);
    expect_bound(mine, slot);
    other->class[CLASS_COUNT - 1].listed = 0;
    test_give(active, block);
    expect_heaps_sound();
}

static void inactive_heaps_are_exchanged(void)
{
    struct heap *mine = heap_here(), *other = bound_to_far_slot(), *unbound = test_heap_new(true);
    unsigned slot = sync_slot();
    expect_bound(mine, slot);
    uint64_t before = takeover_count;
    /* They look the larger ones: else they would be merged into ours. */
    other->class[CLASS_COUNT - 1].listed = unbound->class[CLASS_COUNT - 1].listed = 100000;
    other->refills = 7;
    look_now(mine, other); /* first look: it has changed */
    let_it_become_quiet();
    look_now(mine, other); /* no slow paths, but its lists have not been looked at yet */
    let_it_become_quiet();
    for (mine->remote_frees = 64; mine->remote_frees < 120;)
        EXPECT(!heap_wants_reclaim(mine, other, 1)); /* not at every free */
    look_now(mine, global_heap_of(0));
    looked_at_long_ago(unbound);
    look_now(mine, unbound);
    expect_bound(mine, slot);
    EXPECT_EQ(unbound->x_slot, SLOT_NONE);
    EXPECT_EQ(takeover_count, before);

    look_now(mine, other);
    expect_bound(other, slot);
    expect_bound(mine, far_slot);
    EXPECT_EQ(takeover_count, before + 1);
    EXPECT(heap_here() == other);
    other->class[CLASS_COUNT - 1].listed = unbound->class[CLASS_COUNT - 1].listed = 0;
    void *p = malloc(333); /* served by the heap that came */
    EXPECT(p != NULL && superblock_owner(superblock_of(p)) == heap_here());
    free(p);
    expect_heaps_sound();
}

/* A small inactive heap is merged into a larger one; but what is mostly free is everybody's. */
static void merging_shares_what_is_mostly_free(unsigned c)
{
    struct heap *mine = heap_here(), *other = bound_to_far_slot();
    unsigned slot = sync_slot();
    struct superblock *half = test_superblock_new(c), *hardly = test_superblock_new(c);
    unsigned blocks = half->blocks, held = 0;
    void **block = unit_map(blocks * sizeof *block);
    test_carve_all(half);
    test_carve_all(hardly);
    while (held < blocks / 2)
        block[held++] = test_take(half);
    block[held++] = test_take(hardly);
    relist(other, half);
    relist(other, hardly);
    mine->class[CLASS_COUNT - 1].listed += 100000; /* looks the larger one */
    for (int i = 0; i < 3; i++) {                  /* the first look finds it changed, the second its lists */
        look_now(mine, other);
        let_it_become_quiet();
    }
    mine->class[CLASS_COUNT - 1].listed -= 100000;
    expect_bound(mine, slot);
    expect_bound(other, far_slot);
    EXPECT(superblock_owner(half) == mine);
    EXPECT(superblock_owner(hardly) == global_heap_of(c));
    EXPECT_EQ(other->class[c].listed, 0);
    expect_heaps_sound();
    while (held > 0)
        free(block[--held]);
    EXPECT_EQ(class_inspect(c).live, 0);
    expect_heaps_sound();
    munmap(block, blocks * sizeof *block);
}

/* ---- a thread that is moved ---- */

static void *block[1000];

static void take_blocks(size_t count, unsigned c)
{
    for (size_t i = 0; i < count; i++)
        EXPECT((block[i] = malloc(size_class[c].bytes)) != NULL);
}

static void give_blocks(size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(block[i]);
}

static void expect_nothing_live(unsigned c)
{
    EXPECT_EQ(class_inspect(c).live, 0);
    expect_heaps_sound();
}

/* The thread, on `mine`, was on far_slot and is now where `other` was. */
static void move_here_from_far_slot(struct heap *mine, struct heap *other)
{
    unsigned slot = sync_slot();
    expect_bound(mine, slot);
    heap_of_cid[slot] = other;
    heap_of_cid[far_slot] = mine;
    other->x_slot = slot;
    mine->x_slot = far_slot;
    rcs_fence();
}

static void expect_brought(const struct heap *mine, const struct heap *other)
{
    expect_bound(mine, sync_slot());
    expect_bound(other, far_slot);
}

/* Its blocks are of the heap it left, and come along at its first slow path. */
static void a_thread_brings_its_heap_along(unsigned c)
{
    const size_t count = 200;
    take_blocks(count, c);
    struct heap *mine = heap_here(), *other = bound_to_far_slot();
    move_here_from_far_slot(mine, other);
    void *p = malloc(size_class[c].bytes); /* the heap here has nothing: a slow path */
    EXPECT(p != NULL);
    expect_brought(mine, other);
    EXPECT(superblock_owner(superblock_of(block[0])) == mine);
    uint64_t remote = mine->remote_frees + other->remote_frees;
    give_blocks(count);
    free(p);
    EXPECT_EQ(mine->remote_frees + other->remote_frees, remote);
    expect_nothing_live(c);
}

/* And if it is moved while it brings its heap: that goes where the thread was, and is brought once more. */
static void a_thread_moved_meanwhile_brings_its_heap_again(unsigned c)
{
    const size_t count = 200;
    take_blocks(count, c);
    struct heap *mine = heap_here(), *other = bound_to_far_slot();
    unsigned slot = sync_slot();
    EXPECT(heap_rebind_after_migration(mine) == mine);
    EXPECT(heap_rebind_after_migration(other) == other); /* the slow path began on far_slot */
    expect_bound(mine, far_slot);
    expect_bound(other, slot);
    void *p = malloc(size_class[c].bytes);
    EXPECT(p != NULL);
    expect_brought(mine, other);
    give_blocks(count);
    free(p);
    expect_nothing_live(c);
}

/* All it does is free: the first of those are remote, then the heap is brought. */
static void a_thread_that_only_frees_brings_its_heap_along(unsigned c)
{
    take_blocks(ARRAY_LEN(block), c);
    struct heap *mine = heap_here(), *other = bound_to_far_slot();
    move_here_from_far_slot(mine, other);
    give_blocks(ARRAY_LEN(block));
    expect_brought(mine, other);
    lock_take(&mine->lock);
    heap_flush_pending(mine);
    lock_release(&mine->lock);
    expect_nothing_live(c);
}

/* Another thread has refilled the heap it left: it is that one's now. */
static void a_heap_in_use_is_not_brought_along(unsigned c)
{
    const size_t count = 200;
    take_blocks(count, c);
    struct heap *mine = heap_here(), *other = bound_to_far_slot();
    unsigned slot = sync_slot();
    move_here_from_far_slot(mine, other);
    mine->refills += 2;
    void *p = malloc(size_class[c].bytes);
    EXPECT(p != NULL);
    expect_bound(other, slot);
    expect_bound(mine, far_slot);
    give_blocks(count);
    free(p);
    expect_nothing_live(c);
}

int main(void)
{
    unit_print_mode();
    unit_watchdog(60);
    stay_on_this_cpu();
    a_resting_heap_is_stolen_from(size_class_of(300));
    a_resting_heap_is_stolen_from(size_class_of(25000));
    a_refill_takes_from_others_before_it_grows(size_class_of(960));
    a_refill_takes_from_others_before_it_grows(size_class_of(7000));
    a_thread_brings_its_heap_along(size_class_of(640));
    a_thread_brings_its_heap_along(size_class_of(9000));
    a_thread_moved_meanwhile_brings_its_heap_again(size_class_of(680));
    if (sync_mode == sync_rcs) {
        what_came_back_to_a_resting_heap_is_swept(size_class_of(1200));
        a_swept_superblock_is_not_lost(size_class_of(1500));
        a_heap_whose_active_list_changes_is_not_exchanged(size_class_of(420));
        inactive_heaps_are_exchanged();
        merging_shares_what_is_mostly_free(size_class_of(448));
        merging_shares_what_is_mostly_free(size_class_of(5000));
        a_thread_that_only_frees_brings_its_heap_along(size_class_of(560));
    }
    a_heap_in_use_is_not_brought_along(size_class_of(720));
    return 0;
}
