/* SPDX-License-Identifier: MIT
 *
 * Random operations of every API against a reference map.
 *
 * Each thread owns a table of slots; one operation picks a slot and allocates into it, resizes it or frees it by one of
 * the many names there are.  After every call the reference knows what must be true: the block's alignment, that all
 * its usable bytes overlap no live block of any thread (the shadow map), that the bytes written are the bytes read
 * back, that calloc's are zero, that a refused call left everything as it was.  Slots are swapped with other threads
 * through a shared shelf now and then, so frees are remote as well as local.  Phases change the weights: growing,
 * steady, shrinking, everything freed, so that superblocks and spans go through all their states, not only the busy
 * ones.
 *
 * model --ops N --threads N --slots N; the seed is printed and TEST_SEED repeats a single-threaded run exactly.
 */
#include "support/family.h"
#include "support/pattern.h"
#include "support/rng.h"
#include "support/shadow.h"
#include <pthread.h>

struct slot {
    unsigned char *block;
    size_t size;   /* bytes asked for, all filled with the pattern of key */
    size_t usable; /* bytes claimed in the shadow map */
    size_t alignment;
    uint64_t key;
};

struct actor {
    pthread_t thread;
    struct rng rng;
    struct slot *slots;
    size_t slot_count;
    uint64_t operations;
    uint64_t next_key;
    size_t live_bytes;
};

#define SHELF_SIZE      64
#define LIVE_LIMIT      (256 * MIB) /* per actor: the test measures correctness, not the machine's memory */
#define MAX_SIZE_BITS   16
#define LARGE_SIZE_BITS 23

static struct slot *shelf[SHELF_SIZE]; /* blocks on their way between threads; exchanged atomically */

static void slot_check(const struct slot *slot)
{
    CHECK_MSG(malloc_usable_size(slot->block) == slot->usable, "usable size of %p changed: %zu, was %zu",
              (void *)slot->block, malloc_usable_size(slot->block), slot->usable);
    pattern_verify_sparse(slot->block, slot->size, slot->size, slot->key);
}

static void slot_adopt(struct actor *actor, struct slot *slot, void *block, size_t size, size_t alignment)
{
    CHECK_MSG(block != NULL, "out of memory for %zu bytes aligned to %zu", size, alignment);
    CHECK_MSG((uintptr_t)block % alignment == 0, "%p is not aligned to %zu (size %zu)", block, alignment, size);
    slot->block = block;
    slot->size = size;
    slot->alignment = alignment;
    slot->usable = malloc_usable_size(block);
    slot->key = actor->next_key++;
    CHECK_MSG(slot->usable >= size, "%p: usable %zu of %zu", block, slot->usable, size);
    shadow_claim(block, slot->usable);
    pattern_fill_sparse(block, size, slot->key);
    actor->live_bytes += slot->usable;
}

static size_t pick_size(struct rng *rng)
{
    size_t die = rng_below(rng, 1000);
    return rng_size(rng, die < 995 ? MAX_SIZE_BITS : LARGE_SIZE_BITS);
}

static void expect_cleared(const unsigned char *block, size_t size)
{
    for (size_t i = 0; i < size; i += i < 512 || size - i <= 512 ? 1 : 61)
        CHECK_MSG(block[i] == 0, "calloc of %zu at %p: byte %zu is 0x%x", size, (const void *)block, i, block[i]);
}

static void slot_fill(struct actor *actor, struct slot *slot)
{
    struct rng *rng = &actor->rng;
    size_t size = pick_size(rng);
    size_t alignment = 16;
    void *block = NULL;
    switch (rng_below(rng, 16)) {
    case 0:
    case 1: {
        size_t count = 1 + rng_below(rng, 8);
        block = calloc(count, size);
        CHECK(block != NULL);
        size *= count;
        expect_cleared(block, size);
        break;
    }
    case 2:
        block = realloc(NULL, size);
        break;
    case 3:
        block = reallocarray(NULL, 3, size);
        size *= 3;
        break;
    case 4:
        alignment = (size_t)1 << (4 + rng_below(rng, 13));
        block = memalign(alignment, size);
        break;
    case 5:
        alignment = (size_t)1 << (4 + rng_below(rng, 13));
        CHECK(posix_memalign(&block, alignment, size) == 0);
        break;
    case 6:
        alignment = (size_t)1 << (4 + rng_below(rng, 8));
        block = aligned_alloc(alignment, size);
        break;
    case 7:
        if (rng_below(rng, 16) == 0) {
            alignment = (size_t)sysconf(_SC_PAGESIZE);
            block = rng_next(rng) & 1 ? valloc(size) : pvalloc(size);
            break;
        }
        /* fall through */
    default:
        block = malloc(size);
        break;
    }
    slot_adopt(actor, slot, block, size, alignment);
}

static void slot_resize(struct actor *actor, struct slot *slot)
{
    struct rng *rng = &actor->rng;
    slot_check(slot);
    size_t size = 1 + pick_size(rng);
    if (rng_below(rng, 3) == 0)
        size = 1 + slot->size + rng_below(rng, 64); /* growth by a little, as string buffers do */
    size_t old_size = slot->size;
    uint64_t old_key = slot->key;
    shadow_release(slot->block, slot->usable);
    actor->live_bytes -= slot->usable;
    void *moved = rng_next(rng) & 1 ? realloc(slot->block, size) : reallocarray(slot->block, 1, size);
    CHECK_MSG(moved != NULL, "realloc %zu -> %zu", old_size, size);
    pattern_verify_sparse(moved, old_size, old_size < size ? old_size : size, old_key);
    slot_adopt(actor, slot, moved, size, 16);
}

static void slot_free(struct actor *actor, struct slot *slot)
{
    slot_check(slot);
    shadow_release(slot->block, slot->usable);
    actor->live_bytes -= slot->usable;
    int saved = errno = (int)rng_below(&actor->rng, 100);
    switch (rng_below(&actor->rng, 8)) {
    case 0:
        if (free_sized != NULL && slot->alignment == 16) {
            free_sized(slot->block, slot->size);
            break;
        }
        /* fall through */
    case 1:
        if (slot->size > 0 && rng_below(&actor->rng, 4) == 0) {
            CHECK(realloc(slot->block, opaque_size(0)) == NULL);
            saved = errno; /* only free promises to keep errno */
            break;
        }
        /* fall through */
    default:
        free(slot->block);
        break;
    }
    CHECK_MSG(errno == saved, "free changed errno from %d to %d", saved, errno);
    slot->block = NULL;
}

static void refused_calls(struct actor *actor)
{
    size_t size = SIZE_MAX - rng_below(&actor->rng, 100000);
    errno = 0;
    CHECK(opaque(malloc(opaque_size(size))) == NULL && errno == ENOMEM);
    CHECK(opaque(calloc(opaque_size(size / 2), 3)) == NULL);
    void *result = actor;
    CHECK(posix_memalign(&result, 24, 100) == EINVAL && result == actor);
    free(NULL);
}

/* Lays one block on the shelf and takes what lay there: from now on it is another thread's to check and free. */
static void trade(struct actor *actor, struct slot *slot)
{
    struct slot *parcel = malloc(sizeof *parcel);
    CHECK(parcel != NULL);
    *parcel = *slot;
    if (slot->block != NULL)
        actor->live_bytes -= slot->usable;
    struct slot *taken = __atomic_exchange_n(&shelf[rng_below(&actor->rng, SHELF_SIZE)], parcel, __ATOMIC_ACQ_REL);
    memset(slot, 0, sizeof *slot);
    if (taken != NULL) {
        *slot = *taken;
        if (slot->block != NULL)
            actor->live_bytes += slot->usable;
        free(taken);
    }
}

static void free_all(struct actor *actor)
{
    for (size_t i = 0; i < actor->slot_count; i++) {
        if (actor->slots[i].block != NULL)
            slot_free(actor, &actor->slots[i]);
    }
}

static void *actor_main(void *argument)
{
    struct actor *actor = argument;
    struct rng *rng = &actor->rng;
    const uint64_t phase_length = 20000;
    size_t busy = actor->slot_count;
    for (uint64_t i = 0; i < actor->operations; i++) {
        if (i % phase_length == 0) {
            busy = 1 + rng_below(rng, actor->slot_count);
            if (rng_below(rng, 8) == 0)
                free_all(actor);
            if (rng_below(rng, 8) == 0)
                malloc_trim(0);
        }
        struct slot *slot = &actor->slots[rng_below(rng, busy)];
        size_t die = rng_below(rng, 1000);
        if (die == 0)
            refused_calls(actor);
        else if (die < 20)
            trade(actor, slot);
        else if (slot->block == NULL && actor->live_bytes < LIVE_LIMIT)
            slot_fill(actor, slot);
        else if (slot->block != NULL && die < 250 && actor->live_bytes < LIVE_LIMIT)
            slot_resize(actor, slot);
        else if (slot->block != NULL)
            slot_free(actor, slot);
    }
    free_all(actor);
    return NULL;
}

int main(int argc, char **argv)
{
    test_begin(1200);
    uint64_t seed = test_seed_from(NULL);
    size_t threads = test_option(argc, argv, "--threads", 1);
    uint64_t operations = test_option(argc, argv, "--ops", 2000000);
    size_t slots = test_option(argc, argv, "--slots", 20000);
    shadow_create();
    struct actor *actors = calloc(threads, sizeof *actors);
    CHECK(actors != NULL);
    for (size_t t = 0; t < threads; t++) {
        struct actor *actor = &actors[t];
        actor->rng.state = seed + t * 0x51ed2701;
        actor->slot_count = slots / threads;
        actor->slots = calloc(actor->slot_count, sizeof *actor->slots);
        actor->operations = operations / threads;
        actor->next_key = (uint64_t)t << 48;
        CHECK(actor->slots != NULL);
        if (t > 0)
            CHECK(pthread_create(&actor->thread, NULL, actor_main, actor) == 0);
    }
    actor_main(&actors[0]);
    for (size_t t = 1; t < threads; t++)
        CHECK(pthread_join(actors[t].thread, NULL) == 0);
    for (size_t i = 0; i < SHELF_SIZE; i++) {
        if (shelf[i] != NULL && shelf[i]->block != NULL)
            slot_free(&actors[0], shelf[i]);
        free(shelf[i]);
    }
    for (size_t t = 0; t < threads; t++)
        free(actors[t].slots);
    free(actors);
    test_say("%llu operations in %zu threads\n", (unsigned long long)operations, threads);
    return 0;
}
