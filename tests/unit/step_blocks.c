/* SPDX-License-Identifier: MIT */
#include "step_blocks.h"

#include <malloc.h>

#include "heap/purge.h"
#include "heap/signal_safe.h"
#include "inspect.h"
#include "step.h"
#include "unit.h"

#define FLAGGED_BYTES ((size_t)4 << 30) /* of region */
/* Superblocks a scene and an intruder may add: two for 70 blocks, and what both have in hand when it happens. */
#define GROWTH_MAX 6

/* Debug builds audit superblocks as they are relisted, by thousands of instructions that have nothing to do with
 * sections: the steppers leave that out (expect_heaps_sound asks the same after each scene). */
const char *__wrap_superblock_check(const struct superblock *s);
const char *__wrap_superblock_check(const struct superblock *s)
{
    (void)s;
    return NULL;
}

struct pool pool_a, pool_b;
struct heap *home, *elsewhere;
unsigned small, medium;
static uint64_t counter;
static _Atomic uint64_t counted;
static size_t superblocks_when_set;

void enter(struct pool *pool, void *block, size_t size)
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

void *strike_out(struct pool *pool, unsigned n)
{
    EXPECT(n < pool->count);
    struct held held = pool->held[n];
    expect_stamped(&held);
    pool->held[n] = pool->held[--pool->count];
    if (atomic_exchange(flag_of(held.block), 0) != 1)
        FAIL("block %p is not out", (void *)held.block);
    return held.block;
}

void take(struct pool *pool, size_t size)
{
    enter(pool, malloc(size), size);
}

void give(struct pool *pool)
{
    if (pool->count > 0)
        free(strike_out(pool, pool->count - 1));
}

void pass(struct pool *from, struct pool *to, unsigned n)
{
    to->held[to->count++] = from->held[n];
    from->held[n] = from->held[--from->count];
}

/* ---- what both sides do ---- */

void purge_all(void)
{
    if (slow_enter()) {
        heap_purge(purge_force, NULL);
        slow_leave();
    }
}

void count_once(void)
{
    enum rcs_result result;
    int tries = 0;
    do {
        uint64_t old = __atomic_load_n(&counter, __ATOMIC_RELAXED);
        result = rcs_compare_and_store(home, &counter, old, &counter, old + 1);
    } while ((result == rcs_changed || result == rcs_aborted) && ++tries < 30);
    counted += result == rcs_done;
}

void count_from_zero(void)
{
    counter = counted = 0;
}

/* ---- afterwards ---- */

/* Blocks out that are of this class (and not signal-safe ones). */
static size_t out_of_class(const struct pool *pool, unsigned c)
{
    size_t n = 0;
    for (unsigned k = 0; k < pool->count; k++) {
        const char *block = pool->held[k].block;
        const struct superblock *s = signal_safe_contains(block) ? NULL : superblock_of(block);
        n += s != NULL && s->slice.kind == slice_superblock && s->class == c;
        expect_stamped(&pool->held[k]);
    }
    return n;
}

void step_is_set(void)
{
    superblocks_when_set = class_inspect(small).superblocks;
}

void step_verify(void)
{
    size_t superblocks = class_inspect(small).superblocks;
    EXPECT_MSG(superblocks <= superblocks_when_set + GROWTH_MAX, "%zu superblocks have become %zu",
               superblocks_when_set, superblocks);
    for (unsigned c = small; c <= medium; c++)
        EXPECT_EQ(class_inspect(c).live, out_of_class(&pool_a, c) + out_of_class(&pool_b, c));
    EXPECT_EQ(counter, counted);
    test_heap_bind(home);
    expect_heaps_sound();
    while (pool_a.count > 0)
        give(&pool_a);
    while (pool_b.count > 0)
        give(&pool_b);
    for (unsigned c = small; c <= medium; c++)
        EXPECT_EQ(class_inspect(c).live, 0);
    /* Both heaps' pending stacks are flushed, then everything empty goes: the next scene starts from nothing. */
    lock_take(&home->lock);
    heap_flush_pending(home);
    lock_release(&home->lock);
    test_heap_bind(elsewhere);
    lock_take(&elsewhere->lock);
    heap_flush_pending(elsewhere);
    lock_release(&elsewhere->lock);
    test_heap_bind(home);
    purge_all();
    expect_heaps_sound();
    for (unsigned c = small; c <= medium; c++)
        EXPECT_EQ(class_inspect(c).superblocks, 0);
}

void step_prepare(void)
{
    flags_map(FLAGGED_BYTES);
    small = size_class_of(SMALL);
    medium = size_class_of(MEDIUM);
    home = test_heap_new(true);
    elsewhere = test_heap_new(true);
    test_heap_bind(home);
}
