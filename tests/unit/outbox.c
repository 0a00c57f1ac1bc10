/* SPDX-License-Identifier: MIT
 *
 * Outboxes: blocks of another heap's superblocks are collected and sent by the batch.  Nothing that waits is lost, is
 * sent twice, or waits for ever.
 */
#include <pthread.h>

#include "heap/outbox.h"
#include "heap/pass.h"
#include "heap/purge.h"
#include "heap/remote.h"
#include "inspect.h"
#include "unit.h"

static const unsigned class = 3; /* 64 bytes */

/* The caller's heap for a test; others that superblocks belong to. */
static struct heap *mine, *other;

static struct superblock *foreign_superblock(void)
{
    struct superblock *s = test_superblock_new(class);
    test_carve_all(s);
    return s;
}

static void drop(struct superblock *s)
{
    superblock_clear_owner(s);
    atomic_store(&s->x_remote, 0);
    test_superblock_drop(s);
}

/* The chain a block goes on. */
static unsigned outbox_chain_of(const void *block)
{
    return slice_of(block) & (OUTBOX_CHAINS - 1);
}

static unsigned waiting(const void *block)
{
    return freelist_count(mine->chain[outbox_chain_of(block)]);
}

static unsigned arrived(const struct superblock *s)
{
    return freelist_count(atomic_load(&s->x_remote));
}

/* Frees `count` more blocks of `s` from a heap that does not have it; returns the last. */
static void *free_some(struct superblock *s, unsigned count)
{
    void *block = NULL;
    for (unsigned i = 0; i < count; i++) {
        block = test_take(s);
        superblock_set_owner(s, other);
        free(block);
        superblock_clear_owner(s);
    }
    return block;
}

static void send_mine(void)
{
    lock_take(&mine->lock);
    outbox_send(mine);
    lock_release(&mine->lock);
}

static void send_all(bool all, bool *changed)
{
    *changed = false;
    pass_begin();
    outboxes_send(all, changed);
    pass_end();
}

static void a_batch_is_sent_when_it_is_full(void)
{
    struct superblock *s = foreign_superblock();
    EXPECT_EQ(s->batch, BATCH_BLOCKS);
    void *block = free_some(s, BATCH_BLOCKS - 1);
    EXPECT_EQ(waiting(block), BATCH_BLOCKS - 1);
    EXPECT_EQ(arrived(s), 0);
    free_some(s, 1);
    EXPECT_EQ(waiting(block), 0);
    EXPECT_EQ(arrived(s), BATCH_BLOCKS);
    EXPECT(superblock_check_list(s, s->x_remote) == NULL);
    free_some(s, BATCH_BLOCKS); /* joined to what is there */
    EXPECT_EQ(arrived(s), 2 * BATCH_BLOCKS);
    EXPECT(superblock_check_list(s, s->x_remote) == NULL);
    drop(s);
}

static void larger_blocks_are_fewer_to_a_batch(void)
{
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        struct superblock *s = test_superblock_new(c);
        EXPECT_EQ(s->batch == 0, s->block_bytes > BATCH_BYTES / 2 || s->blocks < 2 * BATCH_PART);
        EXPECT(s->batch != 1 && s->batch <= BATCH_BLOCKS && s->batch * s->block_bytes <= BATCH_BYTES);
        EXPECT(s->batch * BATCH_PART <= s->blocks);
        test_superblock_drop(s);
    }
}

static void what_was_armed_is_pending(void)
{
    struct superblock *s = foreign_superblock();
    atomic_store(&s->x_remote, REMOTE_ARMED);
    superblock_set_owner(s, other);
    void *block[BATCH_BLOCKS];
    for (unsigned i = 0; i < BATCH_BLOCKS; i++)
        block[i] = test_take(s);
    for (unsigned i = 0; i < BATCH_BLOCKS; i++) {
        EXPECT_EQ(s->x_pending_next, 0);
        free(block[i]);
    }
    EXPECT(s->x_pending_next != 0);
    EXPECT(atomic_load(&other->x_pending) != 0);
    EXPECT_EQ(s->x_remote & REMOTE_ARMED, 0);
    atomic_store(&other->x_pending, 0);
    atomic_store(&s->x_pending_next, 0);
    drop(s);
}

/* What another thread does when a chain is about to be pushed; NULL: nothing. */
static void (*happens_before_push)(struct superblock *s);

enum remote_pushed __real_remote_push_chain(struct superblock *s, uint64_t chain);
enum remote_pushed __wrap_remote_push_chain(struct superblock *s, uint64_t chain);
enum remote_pushed __wrap_remote_push_chain(struct superblock *s, uint64_t chain)
{
    if (happens_before_push != NULL)
        happens_before_push(s);
    happens_before_push = NULL;
    return __real_remote_push_chain(s, chain);
}

/* As at the end of a purge. */
static void put_online(struct superblock *s)
{
    lock_take(&other->lock);
    heap_relist(other, s);
    lock_release(&other->lock);
}

/* It was detached when the chain was taken out of the outbox, and is published and armed before the chain arrives. */
static void who_is_owner_by_then_is_told(void)
{
    struct superblock *s = foreign_superblock();
    const void *block = free_some(s, 4);
    lock_take(&mine->lock);
    const uint64_t chain = outbox_take(mine, outbox_chain_of(block));
    lock_release(&mine->lock);
    happens_before_push = put_online;
    outbox_deliver(chain);
    EXPECT(happens_before_push == NULL);
    EXPECT_EQ(arrived(s), 4);
    EXPECT(superblock_owner(s) == other);
    EXPECT(s->x_pending_next != 0);
    test_heap_bind(other);
    lock_take(&other->lock);
    heap_flush_pending(other);
    EXPECT_EQ(arrived(s), 0);
    EXPECT(atomic_load(&s->x_remote) == REMOTE_ARMED);
    heap_list_remove(other, s);
    lock_release(&other->lock);
    test_heap_bind(mine);
    drop(s);
}

/* Slices whose numbers differ by OUTBOX_CHAINS share a chain. */
static void whose_place_is_wanted_is_sent(void)
{
    struct superblock *s[OUTBOX_CHAINS + 1], *first = NULL, *second = NULL;
    for (unsigned i = 0; i <= OUTBOX_CHAINS; i++)
        s[i] = foreign_superblock();
    for (unsigned i = 0; i <= OUTBOX_CHAINS && second == NULL; i++)
        for (unsigned j = 0; j < i; j++)
            if (outbox_chain_of(superblock_start(s[i])) == outbox_chain_of(superblock_start(s[j])))
                first = s[j], second = s[i];
    void *block = free_some(first, 5);
    EXPECT_EQ(waiting(block), 5);
    block = free_some(second, 2);
    EXPECT_EQ(arrived(first), 5);
    EXPECT_EQ(waiting(block), 2);
    EXPECT_EQ(arrived(second), 0);
    send_mine();
    EXPECT_EQ(waiting(block), 0);
    EXPECT_EQ(arrived(second), 2);
    for (unsigned i = 0; i <= OUTBOX_CHAINS; i++)
        drop(s[i]);
}

/* What a thread frees of others' blocks in random order lies in dozens of superblocks; each has a chain. */
static void dozens_of_superblocks_have_room(void)
{
    enum { dozens = 48, each = 3 };
    struct superblock *s[dozens];
    uint64_t chains = 0;
    for (unsigned i = 0; i < dozens; i++) {
        s[i] = foreign_superblock();
        const uint64_t chain = (uint64_t)1 << outbox_chain_of(superblock_start(s[i]));
        EXPECT_MSG((chains & chain) == 0, "superblock %u shares a chain", i);
        chains |= chain;
    }
    for (unsigned round = 0; round < each; round++)
        for (unsigned i = 0; i < dozens; i++)
            EXPECT_EQ(waiting(free_some(s[i], 1)), round + 1);
    for (unsigned i = 0; i < dozens; i++)
        EXPECT_EQ(arrived(s[i]), 0);
    send_mine();
    for (unsigned i = 0; i < dozens; i++) {
        EXPECT_EQ(arrived(s[i]), each);
        drop(s[i]);
    }
}

static void a_pass_sends_what_has_stayed_for_a_period(void)
{
    bool changed;
    struct superblock *s = foreign_superblock();
    void *block = free_some(s, 3);
    send_all(false, &changed); /* the first look */
    EXPECT(changed);
    EXPECT_EQ(waiting(block), 3);
    free_some(s, 1);
    send_all(false, &changed);
    EXPECT(changed);
    EXPECT_EQ(waiting(block), 4);
    send_all(false, &changed);
    EXPECT(!changed);
    EXPECT_EQ(waiting(block), 0);
    EXPECT_EQ(arrived(s), 4);
    free_some(s, 1); /* it is open again */
    EXPECT_EQ(waiting(block), 1);
    send_all(true, &changed);
    EXPECT_EQ(arrived(s), 5);
    send_all(false, &changed);
    EXPECT(!changed);
    drop(s);
}

static void a_closed_outbox_takes_nothing(void)
{
    struct superblock *s = foreign_superblock();
    mine->outbox = NULL;
    void *block = free_some(s, 3);
    EXPECT_EQ(waiting(block), 0);
    EXPECT_EQ(arrived(s), 3);
    send_mine();
    outboxes_recover(); /* a child: whoever closed it is not here */
    EXPECT(mine->outbox == mine->chain);
    free_some(s, 3);
    EXPECT_EQ(waiting(block), 3);
    send_mine();
    EXPECT_EQ(arrived(s), 6);
    drop(s);
}

static void a_damaged_chain_is_refused(void)
{
    struct superblock *s = foreign_superblock();
    remote_push(s, test_take(s));
    uint64_t there = s->x_remote;
    void *top = free_some(s, 3);
    lock_take(&mine->lock);
    uint64_t chain = outbox_take(mine, outbox_chain_of(top));
    lock_release(&mine->lock);
    EXPECT_EQ(freelist_count(chain), 3);
    next_set(top, 0x6161616161616161);
    EXPECT_EQ(remote_push_chain(s, chain), remote_damaged);
    EXPECT_EQ(s->x_remote, there);
    drop(s);
}

/* It never comes to malloc's slow path, which binds a heap. */
static void who_only_frees_has_an_outbox(void)
{
    struct superblock *s = foreign_superblock();
    void *block = test_take(s);
    test_heap_bind(NULL);
    superblock_set_owner(s, other);
    free(block);
    superblock_clear_owner(s);
    EXPECT(heap_of_cid[sync_slot()] != &empty_heap);
    EXPECT_EQ(arrived(s), 0);
    struct heap *made = heap_here();
    EXPECT_EQ(freelist_count(made->chain[outbox_chain_of(block)]), 1);
    lock_take(&made->lock);
    outbox_send(made);
    lock_release(&made->lock);
    EXPECT_EQ(arrived(s), 1);
    drop(s);
    test_heap_bind(mine);
}

/* ---- while others send ---- */

#define RING 4096
static struct {
    _Atomic(void *) block[RING];
    _Atomic bool ends;
} ring;

static void *give_back(void *unused)
{
    for (unsigned i = 0; !ring.ends; i++)
        free(atomic_exchange(&ring.block[i % RING], NULL));
    return unused;
}

static void *send_again_and_again(void *unused)
{
    bool changed;
    while (!ring.ends) {
        if (!slow_enter())
            continue;
        send_all(true, &changed);
        slow_leave();
    }
    return unused;
}

static void nothing_is_lost_while_passes_send(uint64_t rounds)
{
    pthread_t freeing[2], sending;
    for (unsigned i = 0; i < 2; i++)
        EXPECT(pthread_create(&freeing[i], NULL, give_back, NULL) == 0);
    EXPECT(pthread_create(&sending, NULL, send_again_and_again, NULL) == 0);
    for (uint64_t i = 0; i < rounds; i++)
        free(atomic_exchange(&ring.block[i * 7 % RING], malloc(16 + i % 1000)));
    ring.ends = true;
    for (unsigned i = 0; i < 2; i++)
        pthread_join(freeing[i], NULL);
    pthread_join(sending, NULL);
    for (unsigned i = 0; i < RING; i++)
        free(atomic_exchange(&ring.block[i], NULL));
    size_t live = 0;
    for (unsigned c = 0; c < CLASS_COUNT && size_class[c].bytes <= 1024; c++)
        live += class_inspect(c).live;
    EXPECT_MSG(live < 100, "%zu blocks of nobody's", live); /* libc's own, threads' */
}

int main(int argc, char **argv)
{
    unit_watchdog(300);
    unit_needs_rcs();
    mine = test_heap_new(true);
    outbox_start(mine);
    other = test_heap_new(true);
    EXPECT(mine->outbox == mine->chain);
    test_heap_bind(mine);
    a_batch_is_sent_when_it_is_full();
    larger_blocks_are_fewer_to_a_batch();
    what_was_armed_is_pending();
    who_is_owner_by_then_is_told();
    whose_place_is_wanted_is_sent();
    dozens_of_superblocks_have_room();
    a_pass_sends_what_has_stayed_for_a_period();
    a_closed_outbox_takes_nothing();
    a_damaged_chain_is_refused();
    who_only_frees_has_an_outbox();
    test_heap_bind(NULL);
    nothing_is_lost_while_passes_send(unit_option(argc, argv, "--rounds", 300000));
    unit_say("outboxes: nothing lost, nothing twice\n");
    return 0;
}
