/* SPDX-License-Identifier: MIT
 *
 * What an attacker makes of a bug.  `leak`: an owner's data in the memory of the next, who did not clear it.  `links`:
 * a free block's first words overwritten, so that malloc hands out a place of the attacker's choice; the known attacks
 * on glibc's lists, and the same against lists as Sutler's, whose link is an address in the upper 48 bits and a count
 * in the lower 16.  `spray`: what can be foretold about the place of the next block.
 */
#include "corpus.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

static struct crowd crowd;

/* leak: many blocks full of secrets are freed, and a new owner of as many looks what it got. */

static void secrets(size_t size, size_t count, void **blocks)
{
    for (size_t i = 0; i < count; i++) {
        blocks[i] = take(size);
        fill(blocks[i], size < MIB ? size : MIB, 'S');
    }
    for (size_t i = 0; i < count; i++)
        give(blocks[i]);
}

static void *leak_in_thread(void *argument)
{
    const struct bug *bug = argument;
    void *blocks[64];
    secrets(bug->size, bug->length, blocks);
    return NULL;
}

static void look_at_new(const struct bug *bug, void *(*allocate)(size_t))
{
    bug_begin();
    bool seen = false;
    for (size_t i = 0; i < bug->length; i++)
        seen |= holds(allocate(bug->size), bug->size < MIB ? bug->size : MIB, 'S');
    bug_end();
    effect(seen);
}

static void *take_aligned(size_t size)
{
    return memalign(64, size);
}

static void *take_grown(size_t size)
{
    return realloc(take(size / 2), size);
}

static void *take_zeroed(size_t size)
{
    return calloc(1, size);
}

static void new_malloc(const struct bug *bug)
{
    leak_in_thread((void *)bug);
    look_at_new(bug, take);
}

static void new_aligned(const struct bug *bug)
{
    leak_in_thread((void *)bug);
    look_at_new(bug, take_aligned);
}

static void new_grown(const struct bug *bug)
{
    leak_in_thread((void *)bug);
    look_at_new(bug, take_grown);
}

static void new_zeroed(const struct bug *bug)
{
    leak_in_thread((void *)bug);
    look_at_new(bug, take_zeroed);
}

static void of_another_thread(const struct bug *bug)
{
    in_thread(leak_in_thread, (void *)bug);
    look_at_new(bug, take);
}

/* What the allocator itself leaves in a block: an address tells where the heap is. */
static void of_address(const struct bug *bug)
{
    void *blocks[64];
    secrets(bug->size, 64, blocks);
    bug_begin();
    bool seen = false;
    for (size_t i = 0; i < 64; i++) {
        uintptr_t *block = take(bug->size);
        for (size_t k = 0; k < 64; k++) /* in the block, in the upper 48 bits, or with the low bits gone */
            seen |= block[0] >> 16 == (uintptr_t)blocks[k] || block[0] >> 12 == (uintptr_t)blocks[k] >> 12 ||
                    (block[0] >> 16) >> 12 == (uintptr_t)blocks[k] >> 12;
    }
    bug_end();
    effect(seen);
}

const struct bug leak[] = {
    {"of_64", new_malloc, 64, 0, 64},       {"of_1000", new_malloc, 1000, 0, 64},
    {"of_20000", new_malloc, 20000, 0, 16}, {"of_100000", new_malloc, 100000, 0, 16},
    {"of_1_mib", new_malloc, MIB, 0, 4},    {"of_32_mib", new_malloc, 32 * MIB, 0, 4},
    {"aligned", new_aligned, 128, 0, 64},   {"grown", new_grown, 1000, 0, 64},
    {"calloc", new_zeroed, 1000, 0, 64},    {"of_another_thread", of_another_thread, 1000, 0, 64},
    {"of_address", of_address, 64, 0, 0},   {0},
};

/* links: `first`, then `second` is freed, so that the second's link leads to the first; the bug writes into the second.
 * The attacker wants one of the next blocks to lie in `decoy`. */

static _Alignas(4096) unsigned char decoy[4096];

struct freed {
    uintptr_t *first, *second;
};

static struct freed two_freed(const struct bug *bug)
{
    crowd_take(&crowd, bug->size);
    struct freed blocks = {take(bug->size), take(bug->size)};
    give(blocks.first);
    give(blocks.second);
    return blocks;
}

static void look_for(const unsigned char *target, size_t size)
{
    static struct crowd later;
    crowd_take(&later, size);
    bool taken_in = crowd_overlaps(&later) || crowd_changed(&crowd, CROWD_MOST) != 0 || crowd_meets(&later, target, 64);
    for (size_t i = 0; i < later.count; i++)
        taken_in |= crowd_meets(&crowd, later.blocks[i], size);
    effect(taken_in);
    if (taken_in)
        verdict();
    crowd_give(&later);
    crowd_give(&crowd);
    settle(size);
}

static void overwrite(const struct bug *bug, uintptr_t *block, uintptr_t with, size_t bytes)
{
    bug_begin();
    for (size_t i = 0; i < bytes; i++)
        ((volatile unsigned char *)block)[(size_t)bug->at + i] = (unsigned char)(with >> (8 * ((size_t)bug->at + i)));
    bug_end();
}

/* `length` bytes from `at` on of the link turned over, the rest left. */
static void partial(const struct bug *bug)
{
    struct freed blocks = two_freed(bug);
    overwrite(bug, blocks.second, ~*blocks.second, bug->length);
    look_for(decoy, bug->size);
}

static void tcache_poisoning(const struct bug *bug)
{
    overwrite(bug, two_freed(bug).second, (uintptr_t)(decoy + 64), 8);
    look_for(decoy + 64, bug->size);
}

static void tcache_poisoning_mangled(const struct bug *bug)
{
    struct freed blocks = two_freed(bug);
    overwrite(bug, blocks.second, (uintptr_t)(decoy + 64) ^ (uintptr_t)blocks.second >> 12, 8);
    look_for(decoy + 64, bug->size);
}

/* The same with a link as Sutler's: the count is read from the freed block and kept, and the target holds a link that
 * leads on.  With `at` 2 only the address is overwritten. */
static void poison_counted(const struct bug *bug, struct freed blocks, uintptr_t *target)
{
    target[0] = *blocks.first;
    overwrite(bug, blocks.second, (uintptr_t)target << 16 | (*blocks.second & 0xffff), bug->length);
    look_for((unsigned char *)target, bug->size);
}

static void counted_poisoning(const struct bug *bug)
{
    poison_counted(bug, two_freed(bug), (uintptr_t *)(decoy + 64));
}

/* To a live block instead of a foreign place. */
static void counted_to_live(const struct bug *bug)
{
    uintptr_t *live = take(bug->size);
    poison_counted(bug, two_freed(bug), live);
}

/* The same when the block has long been on a free list, behind hundreds that were freed after it. */
static void counted_late(const struct bug *bug)
{
    static struct crowd others;
    crowd_take(&others, bug->size);
    struct freed blocks = two_freed(bug);
    crowd_give(&others);
    uintptr_t link = *blocks.second, *next = (uintptr_t *)(link >> 16), *target = (uintptr_t *)(decoy + 64);
    bool is_address = next == blocks.first || crowd_meets(&others, next, 1);
    target[0] = is_address ? *next : link - 1;
    overwrite(bug, blocks.second, (uintptr_t)target << 16 | (link & 0xffff), bug->length);
    for (size_t i = 0; i < 3 * CROWD_MOST; i++)
        if (take(bug->size) == (void *)target) {
            effect(true);
            verdict();
        }
    settle(bug->size);
}

/* The link of another free block, copied: sound in itself. */
static void replayed(const struct bug *bug)
{
    struct freed blocks = two_freed(bug);
    overwrite(bug, blocks.second, *blocks.first, 8);
    look_for(decoy, bug->size);
}

/* A double free gets the same block twice; its first owner writes the link that the allocator uses next. */
static void fastbin_dup(const struct bug *bug)
{
    crowd_take(&crowd, bug->size);
    uintptr_t *first = take(bug->size), *second = take(bug->size);
    void *filler[7];
    for (int i = 0; i < 7; i++)
        filler[i] = take(bug->size);
    for (int i = 0; i < 7; i++)
        give(filler[i]);
    give(first);
    give(second);
    bug_begin();
    give(first);
    for (int i = 0; i < 7; i++)
        take(bug->size);
    uintptr_t *owned = take(bug->size);
    owned[0] = ((uintptr_t)decoy + 48) ^ (uintptr_t)owned >> 12;
    bug_end();
    look_for(decoy, bug->size);
}

/* An overflow writes a forged pair of links into the free neighbour, and the block is freed next to it. */
static void unsafe_unlink(const struct bug *bug)
{
    size_t follower;
    crowd_take(&crowd, bug->size);
    size_t index = crowd_nearest(&crowd, &follower);
    uintptr_t *next = (uintptr_t *)crowd.blocks[follower];
    give(crowd.blocks[follower]);
    crowd.blocks[follower] = NULL;
    uintptr_t *in_decoy = (uintptr_t *)(decoy + 64);
    bug_begin();
    fill(crowd.blocks[index] + bug->size, (size_t)((unsigned char *)next - crowd.blocks[index]) - bug->size, 0);
    next[0] = (uintptr_t)(in_decoy - 3);
    next[1] = (uintptr_t)(in_decoy - 2);
    bug_end();
    give(crowd.blocks[index]);
    crowd.blocks[index] = NULL;
    malloc_trim(0);
    effect(!is_zero(decoy, sizeof decoy));
    look_for(decoy, bug->size);
}

/* The size in front of a block, where an allocator keeps one, is made larger by an overflow of one byte. */
static void overlapping_chunks(const struct bug *bug)
{
    size_t follower;
    crowd_take(&crowd, bug->size);
    size_t index = crowd_nearest(&crowd, &follower);
    bug_begin();
    unsigned char *size_byte = crowd.blocks[index] + bug->at, larger_size = (unsigned char)bug->length;
    fill(size_byte, 1, *size_byte == larger_size ? larger_size + 16 : larger_size);
    bug_end();
    effect(crowd_changed(&crowd, index) != 0);
    give(crowd.blocks[follower]);
    crowd.blocks[follower] = NULL;
    unsigned char *larger = take(bug->length - 16);
    effect(crowd_meets(&crowd, larger, bug->length - 16));
    crowd_give(&crowd);
    settle(bug->size);
}

const struct bug links[] = {
    {"partial_byte_0", partial, 64, 0, 1},
    {"partial_byte_1", partial, 64, 1, 1},
    {"partial_byte_2", partial, 64, 2, 1},
    {"partial_byte_5", partial, 64, 5, 1},
    {"partial_byte_7", partial, 64, 7, 1},
    {"partial_low_half", partial, 64, 0, 4},
    {"tcache_poisoning", tcache_poisoning, 64, 0, 0},
    {"tcache_poisoning_mangled", tcache_poisoning_mangled, 64, 0, 0},
    {"counted_poisoning", counted_poisoning, 64, 0, 8},
    {"counted_poisoning_of_1000", counted_poisoning, 1000, 0, 8},
    {"counted_address_only", counted_poisoning, 64, 2, 6},
    {"counted_to_live", counted_to_live, 64, 0, 8},
    {"counted_late", counted_late, 64, 0, 8},
    {"replayed", replayed, 64, 0, 0},
    {"fastbin_dup", fastbin_dup, 64, 0, 0},
    {"unsafe_unlink", unsafe_unlink, 1032, 0, 0},
    {"overlapping_chunks_of_24", overlapping_chunks, 24, 24, 0xa1},
    {"overlapping_chunks_of_72", overlapping_chunks, 72, 72, 0xf1},
    {0},
};

/* spray: the attacker's guess has to come true each time to count; chance alone does not. */

static void guessed(const struct bug *bug, bool (*comes_true)(size_t size))
{
    crowd_take(&crowd, bug->size);
    size_t right = 0;
    bug_begin();
    for (int i = 0; i < SAME_TRIALS; i++)
        right += comes_true(bug->size);
    bug_end();
    effect(right == SAME_TRIALS);
}

static bool next_is_behind(size_t size)
{
    unsigned char *first = take(size), *second = take(size);
    return second > first && (size_t)(second - first) < 2 * size;
}

static bool freed_is_next(size_t size)
{
    unsigned char *block = take(size);
    give(block);
    return take(size) == block;
}

static bool freed_is_last_in_first_out(size_t size)
{
    unsigned char *first = take(size), *second = take(size);
    give(first);
    give(second);
    unsigned char *third = take(size), *fourth = take(size);
    return third == second && fourth == first;
}

/* One free block amid live ones, and a spray that is to hit it. */
static bool hole_is_filled(size_t size)
{
    unsigned char *block = take(size);
    bool hit = false;
    for (int i = 0; i < 16; i++)
        take(size);
    give(block);
    for (int i = 0; i < 4096 && !hit; i++)
        hit = take(size) == block;
    return hit;
}

/* The same with a spray that frees as well, until a quarantine has let go of the block. */
static bool hole_is_filled_at_last(size_t size)
{
    unsigned char *block = take(size);
    give(block);
    for (int i = 0; i < 4; i++) {
        settle(size);
        for (int k = 0; k < 4096; k++)
            if (take(size) == block)
                return true;
    }
    return false;
}

static void adjacent(const struct bug *bug)
{
    guessed(bug, next_is_behind);
}

static void same_again(const struct bug *bug)
{
    guessed(bug, freed_is_next);
}

static void last_in_first_out(const struct bug *bug)
{
    guessed(bug, freed_is_last_in_first_out);
}

static void filled(const struct bug *bug)
{
    guessed(bug, hole_is_filled);
}

static void filled_at_last(const struct bug *bug)
{
    guessed(bug, hole_is_filled_at_last);
}

const struct bug spray[] = {
    {"adjacent_of_64", adjacent, 64, 0, 0},
    {"adjacent_of_1000", adjacent, 1000, 0, 0},
    {"adjacent_of_1_mib", adjacent, MIB, 0, 0},
    {"same_again_of_64", same_again, 64, 0, 0},
    {"same_again_of_1000", same_again, 1000, 0, 0},
    {"same_again_of_1_mib", same_again, MIB, 0, 0},
    {"last_in_first_out", last_in_first_out, 64, 0, 0},
    {"filled", filled, 64, 0, 0},
    {"filled_at_last", filled_at_last, 64, 0, 0},
    {0},
};
