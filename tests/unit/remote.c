/* SPDX-License-Identifier: MIT
 *
 * The remote list: anyone pushes, the owner takes all.  Blocks are neither lost nor doubled whatever is pushed, taken
 * and returned at once, and ARMED is consumed exactly once each time it is set: a superblock whose ARMED is lost waits
 * for ever for its remote frees to be noticed, one consumed twice is pushed twice.
 */
#include <pthread.h>
#include <sched.h>

#include "heap/remote.h"
#include "inspect.h"
#include "unit.h"

#define PUSHERS 3

static void words_of_one_thread(void)
{
    struct superblock *s = test_superblock_new(10);
    test_carve_all(s);
    void *a = test_take(s), *b = test_take(s), *c = test_take(s);
    EXPECT_EQ(s->x_remote, 0);
    EXPECT(!remote_push(s, a));
    EXPECT_EQ(freelist_count(s->x_remote), 1);
    EXPECT(!remote_push(s, b));
    uint64_t chain = remote_take(s, true);
    EXPECT_EQ(s->x_remote, REMOTE_ARMED);
    EXPECT_EQ(chain, freelist_pack(b, 2));
    EXPECT_EQ(next_get(b), freelist_pack(a, 1));
    EXPECT_EQ(next_get(a), 0);
    EXPECT(superblock_check_list(s, chain) == NULL); /* linked from an empty list: a list as it stands */

    EXPECT(remote_push(s, c)); /* consumes ARMED */
    EXPECT_EQ(s->x_remote, freelist_pack(c, 1));
    EXPECT_EQ(next_get(c), 0);
    remote_return(s, chain); /* joined with what came meanwhile */
    EXPECT_EQ(freelist_count(s->x_remote), 3);
    EXPECT((s->x_remote & REMOTE_ARMED) == 0);
    expect_superblock_sound(s);
    chain = remote_take(s, false);
    EXPECT_EQ(s->x_remote, 0);
    EXPECT_EQ(remote_take(s, false), 0);
    s->x_remote = REMOTE_ARMED;
    remote_return(s, chain); /* over ARMED: gone, the caller pushes */
    EXPECT_EQ(s->x_remote, chain);
    chain = remote_take(s, true);
    EXPECT_EQ(remote_take(s, false), 0); /* ARMED is no block */
    s->freelist = superblock_join(s, chain, s->freelist);
    EXPECT_EQ(freelist_count(s->freelist), s->blocks);
    EXPECT(superblock_check_list(s, s->freelist) == NULL);
    test_superblock_drop(s);
}

/* heap_collect joins the chain to the list and then finds that it may not publish that: the thread was moved.  The
 * chain goes back as a list of its own, because a refill takes it for one (restock). */
static void a_chain_that_was_joined_in_vain_is_whole_again(void)
{
    struct superblock *s = test_superblock_new(14);
    test_carve_all(s);
    for (int i = 0; i < 3; i++)
        remote_push(s, test_take(s));
    uint64_t chain = remote_take(s, false);
    EXPECT(superblock_join(s, chain, s->freelist) != 0);
    EXPECT_EQ(superblock_join(s, chain, 0), chain); /* undone */
    remote_return(s, chain);
    const char *damage = superblock_check_list(s, s->x_remote & ~(uint64_t)REMOTE_ARMED);
    EXPECT_MSG(damage == NULL, "returned chain: %s", damage);
    EXPECT_EQ(freelist_count(s->x_remote), 3);
    test_superblock_drop(s);
}

/* A chain somebody wrote to cannot be joined, and nothing of it goes back; what came meanwhile stays as it is. */
static void nothing_returned_changes_nothing(void)
{
    struct superblock *s = test_superblock_new(14);
    test_carve_all(s);
    remote_push(s, test_take(s));
    remote_push(s, test_take(s));
    uint64_t there = s->x_remote;
    remote_return(s, 0);
    EXPECT_EQ(s->x_remote, there);
    test_superblock_drop(s);
}

/* The block pushed over ARMED ends the chain: next pointers never carry the mark. */
static void the_mark_stays_out_of_links(void)
{
    struct superblock *s = test_superblock_new(3);
    test_carve_all(s);
    remote_take(s, true);
    for (int i = 0; i < 5; i++)
        EXPECT_EQ(remote_push(s, test_take(s)), i == 0);
    uint64_t chain = remote_take(s, true);
    EXPECT_EQ(freelist_count(chain), 5);
    for (uint64_t at = chain; at != 0; at = next_get(freelist_top(at)))
        EXPECT((at & REMOTE_ARMED) == 0);
    EXPECT(superblock_check_list(s, chain) == NULL);
    test_superblock_drop(s);
}

/* What others free is handed out again only when malloc has nothing else in a short superblock: by then the blocks have
 * left the other cpu's first cache. */
static void a_short_superblock_is_carved_before_its_blocks_come_again(void)
{
    const size_t bytes = 64;
    void *first = malloc(bytes), *block = NULL;
    struct superblock *s = superblock_of(first);
    const unsigned back = s->blocks / 3, blocks = s->blocks; /* no trickle: more than a quarter */
    EXPECT(blocks * bytes <= SLICE_BYTES && superblock_is_carvable(s));
    void **taken = calloc(blocks, sizeof *taken);
    taken[0] = first;
    for (unsigned i = 1; i < blocks; i++) {
        taken[i] = block = malloc(bytes);
        EXPECT(superblock_of(block) == s);
        if (i == back)
            for (unsigned j = 0; j < back; j++)
                remote_push(s, taken[j]);
        EXPECT_EQ(freelist_count(s->x_remote), i < back ? 0 : back);
    }
    block = malloc(bytes); /* there is no other */
    EXPECT(block == taken[back - 1]);
    EXPECT_EQ(s->x_remote, 0);
    free(block);
    for (unsigned i = back; i < blocks; i++)
        free(taken[i]);
    free(taken);
}

/* ---- many pushers, one taker ---- */

static struct superblock *shared;
static _Atomic(void *) hand[PUSHERS][64]; /* blocks the taker dealt out */
static _Atomic uint64_t consumed, pushed;
static _Atomic bool stop;

static void *push_what_is_dealt(void *number)
{
    size_t me = (size_t)(uintptr_t)number;
    for (bool last = false; !last;) {
        last = stop;
        uint64_t before = pushed;
        for (size_t i = 0; i < 64; i++) {
            void *block = atomic_exchange(&hand[me][i], NULL);
            if (block == NULL)
                continue;
            consumed += remote_push(shared, block);
            pushed++;
        }
        if (pushed == before)
            sched_yield();
    }
    return NULL;
}

static void deal(struct rng *rng, uint64_t *dealt)
{
    for (int i = 0; i < 32 && shared->freelist != 0; i++) {
        _Atomic(void *) *to = &hand[rng_below(rng, PUSHERS)][rng_below(rng, 64)];
        if (*to == NULL) {
            void *block = test_take(shared);
            memset(block, 0x77, shared->block_bytes);
            *to = block;
            ++*dealt;
        }
    }
}

static void nothing_is_lost_between_threads(struct rng *rng, uint64_t blocks)
{
    shared = test_superblock_new(size_class_of(208));
    test_carve_all(shared);
    pthread_t thread[PUSHERS];
    for (size_t i = 0; i < PUSHERS; i++)
        EXPECT_EQ(pthread_create(&thread[i], NULL, push_what_is_dealt, (void *)i), 0);
    uint64_t dealt = 0, taken = 0, armed = 0, returned = 0;
    while (dealt < blocks || returned <= 10 || consumed <= 10) { /* all of it has to happen, however the machine is busy */
        deal(rng, &dealt);
        if (shared->freelist == 0)
            sched_yield();
        uint64_t idle = 0;
        armed += atomic_compare_exchange_strong(&shared->x_remote, &idle, REMOTE_ARMED); /* as relisting does */
        if (rng_below(rng, 4) != 0)
            continue;
        uint64_t chain = remote_take(shared, false);
        if (chain == 0)
            continue; /* nothing there, or ARMED that nobody had consumed */
        EXPECT(superblock_check_list(shared, chain) == NULL);
        if (rng_below(rng, 3) == 0) {
            /* A section failed, before or after the join. */
            if (rng_below(rng, 2) == 0) {
                EXPECT(superblock_join(shared, chain, shared->freelist) != 0);
                EXPECT_EQ(superblock_join(shared, chain, 0), chain);
            }
            remote_return(shared, chain);
            returned++;
            continue;
        }
        taken += freelist_count(chain);
        shared->freelist = superblock_join(shared, chain, shared->freelist);
        EXPECT(shared->freelist != 0);
    }
    stop = true;
    for (size_t i = 0; i < PUSHERS; i++)
        EXPECT_EQ(pthread_join(thread[i], NULL), 0);
    uint64_t chain = remote_take(shared, false);
    taken += freelist_count(chain);
    if (chain != 0)
        shared->freelist = superblock_join(shared, chain, shared->freelist);
    EXPECT_EQ(taken, dealt);
    EXPECT_EQ(pushed, dealt);
    EXPECT_EQ(freelist_count(shared->freelist), shared->blocks);
    EXPECT(superblock_check_list(shared, shared->freelist) == NULL);
    EXPECT(consumed <= armed);
    EXPECT(dealt > 1000 && returned > 10 && consumed > 10);
    unit_say("%llu dealt, %llu armed, %llu consumed, %llu returned\n", (unsigned long long)dealt,
             (unsigned long long)armed, (unsigned long long)consumed, (unsigned long long)returned);
    test_superblock_drop(shared);
}

/* ---- ARMED, once ---- */

static pthread_barrier_t round_begins, round_ends; /* not yields: on a busy machine each of those is a time slice */
static void *round_block[PUSHERS];

static void *push_one_a_round(void *number)
{
    size_t me = (size_t)(uintptr_t)number;
    for (;;) {
        pthread_barrier_wait(&round_begins);
        if (round_block[me] == NULL)
            return NULL;
        consumed += remote_push(shared, round_block[me]);
        pthread_barrier_wait(&round_ends);
    }
}

static void armed_is_consumed_exactly_once(uint64_t rounds)
{
    shared = test_superblock_new(12);
    test_carve_all(shared);
    pthread_t thread[PUSHERS];
    EXPECT_EQ(pthread_barrier_init(&round_begins, NULL, PUSHERS + 1), 0);
    EXPECT_EQ(pthread_barrier_init(&round_ends, NULL, PUSHERS + 1), 0);
    for (size_t i = 0; i < PUSHERS; i++)
        EXPECT_EQ(pthread_create(&thread[i], NULL, push_one_a_round, (void *)i), 0);
    for (uint64_t round = 0; round < rounds; round++) {
        consumed = 0;
        for (size_t i = 0; i < PUSHERS; i++)
            round_block[i] = test_take(shared);
        EXPECT_EQ(remote_take(shared, true), 0);
        pthread_barrier_wait(&round_begins);
        pthread_barrier_wait(&round_ends);
        EXPECT_EQ(consumed, 1);
        uint64_t chain = remote_take(shared, false);
        EXPECT_EQ(freelist_count(chain), PUSHERS);
        shared->freelist = superblock_join(shared, chain, shared->freelist);
        EXPECT(superblock_check_list(shared, shared->freelist) == NULL);
    }
    memset(round_block, 0, sizeof round_block);
    pthread_barrier_wait(&round_begins);
    for (size_t i = 0; i < PUSHERS; i++)
        EXPECT_EQ(pthread_join(thread[i], NULL), 0);
    test_superblock_drop(shared);
}

int main(int argc, char **argv)
{
    unit_print_mode();
    unit_watchdog(120);
    struct rng rng = unit_rng();
    a_short_superblock_is_carved_before_its_blocks_come_again();
    words_of_one_thread();
    nothing_returned_changes_nothing();
    the_mark_stays_out_of_links();
    a_chain_that_was_joined_in_vain_is_whole_again();
    nothing_is_lost_between_threads(&rng, unit_option(argc, argv, "--blocks", 100000));
    armed_is_consumed_exactly_once(unit_option(argc, argv, "--armed", 10000));
    return 0;
}
