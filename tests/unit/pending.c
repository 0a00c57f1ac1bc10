/* SPDX-License-Identifier: MIT
 *
 * The pending stack: a superblock that needs relisting is pushed by anyone, relisted once by its owner, forwarded if it
 * has moved, and forgotten if it has gone.  However often it is pushed it is on at most one stack, and a push that
 * comes while the stack is being flushed is not lost.
 */
#include <pthread.h>
#include <sched.h>

#include "heap/remote.h"
#include "heap/span.h"
#include "inspect.h"
#include "unit.h"

static void flush(struct heap *h)
{
    lock_take(&h->lock);
    heap_flush_pending(h);
    lock_release(&h->lock);
}

static void relist(struct heap *h, struct superblock *s)
{
    lock_take(&h->lock);
    heap_relist(h, s);
    lock_release(&h->lock);
}

static unsigned pending_length(const struct heap *h)
{
    unsigned n = 0;
    for (uint32_t at = h->x_pending; at > 1; at = superblock_at_slice(at - 2)->x_pending_next)
        EXPECT(n++ < 1000000);
    return n;
}

static void posted_twice_is_there_once(struct heap *h, unsigned c)
{
    struct superblock *s = test_superblock_new(c), *t = test_superblock_new(c);
    test_carve_all(s);
    test_carve_all(t);
    relist(h, s);
    relist(h, t);
    heap_push_pending(h, s);
    heap_push_pending(h, s);
    EXPECT_EQ(pending_length(h), 1);
    heap_push_pending(h, t);
    heap_push_pending(h, s);
    EXPECT_EQ(pending_length(h), 2);
    flush(h);
    EXPECT_EQ(pending_length(h), 0);
    EXPECT(s->x_pending_next == 0 && t->x_pending_next == 0);
    heap_push_pending(h, s);
    EXPECT_EQ(pending_length(h), 1);
    flush(h);
    expect_heaps_sound();
}

/* A stale list place, a disarmed remote list: what relisting repairs. */
static void a_flush_relists(struct heap *h, unsigned c)
{
    struct superblock *s = test_superblock_new(c);
    test_carve_all(s);
    unsigned blocks = s->blocks;
    void **block = unit_map(blocks * sizeof *block);
    for (unsigned i = 0; i < blocks; i++)
        block[i] = test_take(s);
    relist(h, s);
    EXPECT_EQ(s->group, group_nearly_full);
    for (unsigned i = 0; i < blocks - 1; i++)
        EXPECT_EQ(remote_push(s, block[i]), i == 0);
    EXPECT_EQ(s->group, group_nearly_full);
    heap_push_pending(h, s);
    flush(h);
    EXPECT_EQ(freelist_count(s->freelist), blocks - 1);
    EXPECT_EQ(s->group, group_mostly_free);
    EXPECT_EQ(s->x_remote, REMOTE_ARMED);
    expect_heaps_sound();
    free(block[blocks - 1]);
    EXPECT_EQ(class_inspect(c).live, 0);
    munmap(block, blocks * sizeof *block);
}

static void what_moved_is_forwarded(struct heap *h, struct heap *other, unsigned c)
{
    struct superblock *s = test_superblock_new(c);
    test_carve_all(s);
    void *block = test_take(s);
    relist(other, s);
    EXPECT_EQ(remote_push(s, block), remote_pushed_armed);
    heap_push_pending(h, s); /* whoever pushed it had read the owner before it moved */
    flush(h);
    EXPECT_EQ(pending_length(h), 0);
    EXPECT_EQ(pending_length(other), 1);
    EXPECT_EQ(freelist_count(s->x_remote), 1);
    flush(other);
    EXPECT_EQ(pending_length(other), 0);
    EXPECT_EQ(s->group, group_empty);
    expect_heaps_sound();
    heap_push_pending(h, s); /* a hint that is no longer true */
    flush(h);
    flush(other);
    EXPECT_EQ(s->x_pending_next, 0);
    expect_heaps_sound();
}

static void what_has_gone_is_forgotten(struct heap *h, unsigned c)
{
    struct superblock *s = test_superblock_new(c);
    test_carve_all(s);
    uint64_t list = s->freelist;
    heap_push_pending(h, s); /* somebody has it detached, and will relist it */
    flush(h);
    EXPECT(superblock_owner(s) == NULL && s->freelist == list && s->group == group_none && s->x_pending_next == 0);
    heap_push_pending(h, s);
    test_superblock_drop(s); /* a span again */
    flush(h);
    EXPECT_EQ(s->x_pending_next, 0);
    EXPECT(s->slice.kind != slice_superblock);

    /* Pushed, released, born again as another heap's active superblock: nothing may happen to it. */
    struct heap *other = test_heap_new(true);
    s = test_superblock_new(c);
    heap_push_pending(h, s);
    test_carve_all(s);
    superblock_set_owner(s, other);
    other->active[c] = s;
    flush(h);
    EXPECT_EQ(pending_length(other), 1);
    flush(other);
    EXPECT(other->active[c] == s && s->group == group_none && s->threshold == THRESHOLD_NEVER);
    EXPECT(s->x_pending_next == 0);
    other->active[c] = &empty_superblock;
    superblock_clear_owner(s);
    relist(other, s);
    expect_heaps_sound();
}

/* Nobody runs on `other` any more, and all its blocks were freed by others.  Before new memory is used they are found,
 * whatever class is wanted. */
static void what_is_pending_on_inactive_heaps_is_taken(struct heap *h, struct heap *other)
{
    enum { count = 64, blocks = count * 128 };
    static void *block[blocks];
    unsigned c = size_class_of(512), wanted = size_class_of(1024);
    test_heap_bind(other);
    for (size_t i = 0; i < blocks; i++)
        EXPECT((block[i] = malloc(size_class[c].bytes)) != NULL);
    test_heap_bind(h);
    size_t before = span_counts().in_use_bytes;
    for (size_t i = 0; i < blocks; i++)
        free(block[i]);
    EXPECT(pending_length(other) >= count - 2);
    for (size_t i = 0; i < blocks / 4; i++) {
        EXPECT((block[i] = malloc(size_class[wanted].bytes)) != NULL);
        if (i % 64 == 0 && i < 512)
            usleep(15000); /* inactive is what did not change from one look to the next, and the one after it */
    }
    size_t after = span_counts().in_use_bytes;
    EXPECT_MSG(after <= before, "%zu KiB of new memory were used beside %zu KiB of free blocks",
               (after - before) >> 10, (size_t)count * 64);
    for (size_t i = 0; i < blocks / 4; i++)
        free(block[i]);
    expect_heaps_sound();
}

/* ---- pushers against a flusher ---- */

#define POSTERS 3
#define MEMBERS 24

static struct heap *box[2];
static struct superblock *member[MEMBERS];
static void *hostage[MEMBERS]; /* one block of each, pushed and taken back again and again */
static _Atomic uint32_t in_hand[MEMBERS];
static _Atomic bool stop;

static void *post_at_random(void *number)
{
    struct rng rng = {(uintptr_t)number};
    while (!stop) {
        size_t i = rng_below(&rng, MEMBERS);
        uint32_t held = 1;
        if (rng_below(&rng, 4) == 0) {
            heap_push_pending(box[rng_below(&rng, 2)], member[i]); /* a mere hint, to whomever */
        } else if (atomic_compare_exchange_strong(&in_hand[i], &held, 0)) {
            if (remote_push(member[i], hostage[i]) == remote_pushed_armed)
                heap_push_pending(superblock_owner(member[i]), member[i]);
        }
        if (rng_below(&rng, 64) == 0)
            sched_yield();
    }
    return NULL;
}

/* A push that consumed ARMED pushed the superblock, so once the stacks are empty nothing waits on a remote list. */
static void no_post_is_lost(unsigned c, int rounds, struct rng *rng)
{
    for (int i = 0; i < 2; i++)
        box[i] = test_heap_new(true);
    for (int i = 0; i < MEMBERS; i++) {
        member[i] = test_superblock_new(c);
        test_carve_all(member[i]);
        unsigned live = member[i]->blocks / 2u; /* no surplus: they stay where they are */
        hostage[i] = test_take(member[i]);
        for (unsigned k = 1; k < live; k++)
            test_take(member[i]);
        relist(box[i % 2], member[i]);
        in_hand[i] = 1;
    }
    pthread_t thread[POSTERS];
    for (uintptr_t i = 0; i < POSTERS; i++)
        EXPECT_EQ(pthread_create(&thread[i], NULL, post_at_random, (void *)(rng_next(rng) | 1)), 0);
    unsigned collected = 0;
    const unsigned enough = 100; /* on a busy machine the others may not have begun after all the rounds */
    for (int round = 0; round < rounds || collected <= enough; round++) {
        struct heap *h = box[round % 2];
        lock_take(&h->lock);
        heap_flush_pending(h);
        for (int i = round % 2; i < MEMBERS; i += 2) {
            struct superblock *s = member[i];
            if (in_hand[i] == 0 && freelist_top(s->freelist) == hostage[i]) { /* arrived: take it out again */
                s->freelist = next_get(hostage[i]);
                collected++;
                in_hand[i] = 1;
            }
        }
        lock_release(&h->lock);
        if (round % 16 == 0)
            sched_yield();
    }
    stop = true;
    for (int i = 0; i < POSTERS; i++)
        EXPECT_EQ(pthread_join(thread[i], NULL), 0);
    for (int i = 0; i < 4; i++)
        flush(box[i % 2]);
    for (int i = 0; i < MEMBERS; i++) {
        EXPECT_EQ(member[i]->x_pending_next, 0);
        EXPECT_EQ(freelist_count(member[i]->x_remote), 0);
        EXPECT(in_hand[i] == 1 || freelist_top(member[i]->freelist) == hostage[i]);
    }
    expect_heaps_sound();
    unit_say("%u round trips\n", collected);
}

int main(int argc, char **argv)
{
    unit_print_mode();
    unit_watchdog(120);
    struct rng rng = unit_rng();
    struct heap *h = test_heap_new(true), *other = test_heap_new(true);
    unsigned c = size_class_of(900);
    test_heap_bind(h);
    posted_twice_is_there_once(h, c);
    a_flush_relists(h, c);
    test_heap_bind(other); /* the section that relists must run on the owner */
    what_moved_is_forwarded(h, other, size_class_of(10000));
    test_heap_bind(h);
    what_has_gone_is_forgotten(h, size_class_of(2000));
    if (sync_mode == sync_rcs) /* in lock mode every free goes to its heap at once */
        what_is_pending_on_inactive_heaps_is_taken(h, other);
    test_heap_bind(NULL);
    if (sync_mode != sync_rcs) /* there, a flush by a thread that is on neither heap may only push again */
        no_post_is_lost(size_class_of(500), (int)unit_option(argc, argv, "--rounds", 200000), &rng);
    return 0;
}
