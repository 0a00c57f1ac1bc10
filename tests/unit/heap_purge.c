/* SPDX-License-Identifier: MIT
 *
 * Purging the whole heap: what is free goes back, what is in use keeps its bytes, and other threads go on allocating
 * while their superblocks are taken offline under them.
 */
#include "heap/purge.h"

#include <pthread.h>
#include <sched.h>

#include "heap/span.h"
#include "inspect.h"
#include "os/os.h"
#include "unit.h"

/* Under the rules of a slow path, as the callers of heap_purge are. */
static size_t purge(enum purge_what what, bool *changed)
{
    EXPECT(slow_enter());
    size_t bytes = heap_purge(what, changed);
    slow_leave();
    return bytes;
}

static void fill(void *block, size_t size, uint64_t key)
{
    for (size_t i = 0; i + 8 <= size; i += 8)
        *(uint64_t *)((char *)block + i) = key + i;
}

static void expect_filled(const void *block, size_t size, uint64_t key)
{
    for (size_t i = 0; i + 8 <= size; i += 8)
        EXPECT_MSG(*(const uint64_t *)((const char *)block + i) == key + i, "a block of %zu bytes lost byte %zu", size,
                   i);
}

static void everything_free_goes_back(size_t size, unsigned keep_every)
{
    unsigned c = size_class_of(size);
    const size_t count = ((size_t)8 << 20) / size_class[c].bytes;
    void **block = unit_map(count * sizeof *block);
    for (size_t i = 0; i < count; i++) {
        EXPECT((block[i] = malloc(size)) != NULL);
        fill(block[i], size, i);
    }
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (keep_every != 0 && i % keep_every == 0)
            block[kept++] = block[i], fill(block[kept - 1], size, kept - 1);
        else
            free(block[i]);
    size_t resident = os_resident_bytes(), purged = purge(purge_force, NULL);
    if (keep_every == 0 || keep_every * size_class[c].bytes > 40 * unit_bytes_for(size_class[c].slices))
        EXPECT(resident == 0 || os_resident_bytes() + ((size_t)2 << 20) < resident);
    EXPECT_EQ(span_counts().dirty_bytes, 0);
    for (size_t i = 0; i < kept; i++)
        expect_filled(block[i], size, i);
    struct class_state state = class_inspect(c);
    EXPECT_EQ(state.live, kept);
    expect_heaps_sound();
    EXPECT_EQ(purge(purge_force, NULL), 0); /* there is nothing more */
    unit_say("%zu bytes, 1 of %u kept: %zu KiB given back\n", size, keep_every, purged >> 10);

    /* What was purged is carved again. */
    static void *again[4096];
    size_t more = count < ARRAY_LEN(again) ? count : ARRAY_LEN(again);
    for (size_t i = 0; i < more; i++) {
        EXPECT((again[i] = malloc(size)) != NULL);
        fill(again[i], size, ~i);
    }
    for (size_t i = 0; i < kept; i++)
        expect_filled(block[i], size, i);
    for (size_t i = 0; i < more; i++) {
        expect_filled(again[i], size, ~i);
        free(again[i]);
    }
    for (size_t i = 0; i < kept; i++)
        free(block[i]);
    EXPECT_EQ(class_inspect(c).live, 0);
    munmap(block, count * sizeof *block);
}

/* The clock's passes: the first only looks, a later one purges what has not changed since. */
static void the_clock_spares_what_changes(void)
{
    const size_t size = 2000, count = 4000;
    unsigned c = size_class_of(size);
    void **block = unit_map(count * sizeof *block);
    bool changed;
    purge(purge_force, NULL);
    for (size_t i = 0; i < count; i++)
        fill(block[i] = malloc(size), size, i);
    for (size_t i = 0; i < count; i++)
        if (i % 64 != 0)
            free(block[i]);
    EXPECT_EQ(purge(purge_decay, &changed), 0);
    EXPECT(changed);
    size_t bytes = 0;
    for (int pass = 0; pass < 8 && changed; pass++)
        bytes += purge(purge_decay, &changed);
    EXPECT(!changed); /* it comes to rest */
    EXPECT_MSG(bytes > count * size / 2, "only %zu KiB of %zu were given back", bytes >> 10, count * size >> 10);
    EXPECT_EQ(purge(purge_decay, &changed), 0);
    EXPECT(!changed);
    for (size_t i = 0; i < count; i += 64) {
        expect_filled(block[i], size, i);
        free(block[i]);
    }
    EXPECT_EQ(class_inspect(c).live, 0);
    expect_heaps_sound();
    munmap(block, count * sizeof *block);
}

/* Of a heap without slow paths: everybody's, if another had some; its own, if the program sleeps. */
static struct heap *owner_after_passes(struct heap *idle, unsigned c, unsigned refills, void **block)
{
    struct superblock *s = test_superblock_new(c);
    test_carve_all(s);
    *block = test_take(s);
    lock_take(&idle->lock);
    heap_relist(idle, s);
    lock_release(&idle->lock);
    for (int pass = 0; pass < 4; pass++) {
        heap_here()->refills += refills;
        purge(purge_idle, NULL);
    }
    EXPECT((s->seen & SEEN_PURGED) != 0);
    return superblock_owner(s);
}

static void what_an_idle_heap_hardly_uses_is_shared(unsigned c)
{
    struct heap *idle = test_heap_new(true);
    void *block[2];
    EXPECT(owner_after_passes(idle, c, 0, &block[0]) == idle);
    EXPECT(owner_after_passes(idle, c, 1, &block[1]) == global_heap_of(c));
    expect_heaps_sound();
    free(block[0]);
    free(block[1]);
    EXPECT_EQ(class_inspect(c).live, 0);
}

/* ---- with others at work ---- */

#define WORKERS 3
#define SLOTS   512
static const size_t sizes[] = {24, 100, 480, 1100, 3000, 9000, 40000, 130000};
static _Atomic bool stop;
static _Atomic uint64_t operations;

static void *work(void *seed)
{
    struct rng rng = {(uintptr_t)seed};
    struct {
        char *block;
        size_t size;
        uint64_t key;
    } *slot = unit_map(SLOTS * sizeof *slot);
    uint64_t done = 0;
    while (!stop) {
        size_t i = rng_below(&rng, SLOTS);
        if (slot[i].block != NULL) {
            expect_filled(slot[i].block, slot[i].size, slot[i].key);
            free(slot[i].block);
            slot[i].block = NULL;
        } else {
            slot[i].size = sizes[rng_below(&rng, ARRAY_LEN(sizes))] - rng_below(&rng, 8);
            if (slot[i].size > 2000 && rng_below(&rng, 4) != 0)
                continue;
            slot[i].key = rng_next(&rng);
            EXPECT((slot[i].block = malloc(slot[i].size)) != NULL);
            fill(slot[i].block, slot[i].size, slot[i].key);
        }
        done++;
        if (rng_below(&rng, 4096) == 0)
            sched_yield();
    }
    for (size_t i = 0; i < SLOTS; i++)
        if (slot[i].block != NULL) {
            expect_filled(slot[i].block, slot[i].size, slot[i].key);
            free(slot[i].block);
        }
    operations += done;
    munmap(slot, SLOTS * sizeof *slot);
    return NULL;
}

static void others_go_on(uint64_t duration_ms, struct rng *rng)
{
    size_t before[ARRAY_LEN(sizes)];
    pthread_t thread[WORKERS];
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
        before[i] = class_inspect(size_class_of(sizes[i])).live;
    for (int i = 0; i < WORKERS; i++)
        EXPECT_EQ(pthread_create(&thread[i], NULL, work, (void *)(uintptr_t)rng_next(rng)), 0);
    uint64_t end = os_now_ns() + duration_ms * 1000000, passes = 0;
    size_t bytes = 0;
    for (; os_now_ns() < end; passes++) {
        bytes += purge(rng_below(rng, 4) == 0 ? purge_decay : purge_force, NULL);
        if (rng_below(rng, 4) == 0)
            sched_yield();
    }
    stop = true;
    for (int i = 0; i < WORKERS; i++)
        EXPECT_EQ(pthread_join(thread[i], NULL), 0);
    purge(purge_force, NULL);
    expect_heaps_sound();
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
        EXPECT_EQ(class_inspect(size_class_of(sizes[i])).live, before[i]);
    unit_say("%llu operations, %llu passes, %zu MiB given back\n", (unsigned long long)operations,
             (unsigned long long)passes, bytes >> 20);
    EXPECT(passes > 0 && bytes > 0);
}

int main(int argc, char **argv)
{
    unit_print_mode();
    unit_watchdog(400);
    struct rng rng = unit_rng();
    everything_free_goes_back(112, 0);
    everything_free_goes_back(100, 3000);
    everything_free_goes_back(1000, 7);
    everything_free_goes_back(3000, 61);
    everything_free_goes_back(30000, 5);
    everything_free_goes_back(120000, 0);
    the_clock_spares_what_changes();
    what_an_idle_heap_hardly_uses_is_shared(size_class_of(700));
    others_go_on(unit_option(argc, argv, "--ms", 3000), &rng);
    return 0;
}
