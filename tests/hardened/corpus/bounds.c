/* SPDX-License-Identifier: MIT
 *
 * Out of bounds: overflow, underflow, overread.  A crowd of live blocks makes sure that the neighbour is live, too, so
 * that a write that reaches it has an effect.  Numbers: the block's size, and where and how much is written or read,
 * counted from its start.
 */
#include "corpus.h"

#include <malloc.h>
#include <stdlib.h>

static struct crowd crowd;

/* The end of all: free everything, which is where a canary is looked at, and give others an occasion. */
static void finish(size_t size)
{
    crowd_give(&crowd);
    settle(size);
}

static void behind(const struct bug *bug)
{
    size_t follower;
    crowd_take(&crowd, bug->size);
    size_t index = crowd_nearest(&crowd, &follower);
    bug_begin();
    spoil(crowd.blocks[index] + bug->at, bug->length);
    bug_end();
    effect(crowd_changed(&crowd, index) != 0);
    finish(bug->size);
}

/* A string copied into a block that is one byte too short: the classic. */
static void terminator(const struct bug *bug)
{
    size_t follower;
    crowd_take(&crowd, bug->size);
    size_t index = crowd_nearest(&crowd, &follower);
    bug_begin();
    fill(crowd.blocks[index] + bug->size, 1, '\0');
    bug_end();
    effect(crowd_changed(&crowd, index) != 0);
    finish(bug->size);
}

/* Not linear: a wrong index, which jumps into the neighbour and leaves what is between. */
static void jump(const struct bug *bug)
{
    size_t follower;
    crowd_take(&crowd, bug->size);
    size_t index = crowd_nearest(&crowd, &follower);
    ptrdiff_t distance = crowd.blocks[follower] - crowd.blocks[index];
    bug_begin();
    spoil(crowd.blocks[index] + distance + bug->at, bug->length);
    bug_end();
    effect(crowd_changed(&crowd, index) != 0);
    finish(bug->size);
}

/* The neighbour is free: what a free block holds is the allocator's. */
static void into_free(const struct bug *bug)
{
    size_t follower;
    crowd_take(&crowd, bug->size);
    size_t index = crowd_nearest(&crowd, &follower);
    ptrdiff_t distance = crowd.blocks[follower] - crowd.blocks[index];
    give(crowd.blocks[follower]);
    crowd.blocks[follower] = NULL;
    bug_begin();
    spoil(crowd.blocks[index] + bug->size, (size_t)distance - bug->size + bug->length);
    bug_end();
    static struct crowd later;
    crowd_take(&later, bug->size);
    effect(crowd_changed(&crowd, index) != 0 || crowd_changed(&later, CROWD_MOST) != 0 || crowd_overlaps(&later));
    crowd_give(&later);
    finish(bug->size);
}

/* The block comes from another member of the family; at and length as in behind(). */
static void write_and_free(unsigned char *block, const struct bug *bug)
{
    fill(block, bug->size, 'x');
    bug_begin();
    spoil(block + bug->at, bug->length);
    bug_end();
    effect(crowd_changed(&crowd, CROWD_MOST) != 0);
    give(block);
    finish(bug->size);
}

static void of_calloc(const struct bug *bug)
{
    write_and_free(calloc(bug->size / 4, 4), bug);
}

static void of_aligned(const struct bug *bug)
{
    write_and_free(aligned_alloc(64, bug->size), bug);
}

static void of_page_aligned(const struct bug *bug)
{
    write_and_free(aligned_alloc(4096, bug->size), bug);
}

static void of_realloc_shrunk(const struct bug *bug)
{
    write_and_free(realloc(take(bug->size + 16), bug->size), bug);
}

static void of_realloc_grown(const struct bug *bug)
{
    write_and_free(realloc(take(bug->size - 16), bug->size), bug);
}

/* Who looks how much a block has room for has asked the allocator; behind that is out of bounds. */
static void of_usable(const struct bug *bug)
{
    unsigned char *block = take(bug->size);
    size_t usable = malloc_usable_size(block);
    fill(block, usable, 'x');
    bug_begin();
    spoil(block + usable, bug->length);
    bug_end();
    give(block);
    settle(bug->size);
}

/* The block is never freed: only who looks at live blocks can notice. */
static void never_freed(const struct bug *bug)
{
    size_t follower;
    crowd_take(&crowd, bug->size);
    size_t index = crowd_nearest(&crowd, &follower);
    bug_begin();
    spoil(crowd.blocks[index] + bug->at, bug->length);
    bug_end();
    effect(crowd_changed(&crowd, index) != 0);
}

const struct bug overflow[] = {
    {"by_1", behind, 64, 64, 1},
    {"by_2", behind, 64, 64, 2},
    {"by_4", behind, 64, 64, 4},
    {"by_7", behind, 64, 64, 7},
    {"by_8", behind, 64, 64, 8},
    {"by_9", behind, 64, 64, 9},
    {"by_16", behind, 64, 64, 16},
    {"by_32", behind, 64, 64, 32},
    {"by_64", behind, 64, 64, 64},
    {"by_128", behind, 64, 64, 128},
    {"by_256", behind, 64, 64, 256},
    {"by_1024", behind, 64, 64, 1024},
    {"by_4096", behind, 64, 64, 4096},
    {"slack_of_1", behind, 1, 1, 1},
    {"slack_of_24", behind, 24, 24, 1},
    {"slack_of_100", behind, 100, 100, 1},
    {"slack_of_1000", behind, 1000, 1000, 1},
    {"slack_of_5000", behind, 5000, 5000, 1},
    {"slack_of_20000", behind, 20000, 20000, 1},
    {"slack_of_100000", behind, 100000, 100000, 1},
    {"slack_of_200000", behind, 200000, 200000, 1},
    {"of_16_by_8", behind, 16, 16, 8},
    {"of_32_by_1", behind, 32, 32, 1},
    {"of_1024_by_1", behind, 1024, 1024, 1},
    {"of_4096_by_1", behind, 4096, 4096, 1},
    {"of_4096_by_4096", behind, 4096, 4096, 4096},
    {"of_16384_by_1", behind, 16384, 16384, 1},
    {"of_65536_by_1", behind, 65536, 65536, 1},
    {"of_131072_by_1", behind, 131072, 131072, 1},
    {"of_262144_by_1", behind, 262144, 262144, 1},
    {"of_262144_by_4096", behind, 262144, 262144, 4096},
    {"of_262144_by_131072", behind, 262144, 262144, 131072},
    {"of_1_mib_by_1", behind, MIB, MIB, 1},
    {"of_1_mib_by_4096", behind, MIB, MIB, 4096},
    {"of_32_mib_by_1", behind, 32 * MIB, 32 * MIB, 1},
    {"of_32_mib_by_4096", behind, 32 * MIB, 32 * MIB, 4096},
    {"terminator_of_24", terminator, 24, 0, 0},
    {"terminator_of_64", terminator, 64, 0, 0},
    {"terminator_of_1000", terminator, 1000, 0, 0},
    {"jump", jump, 64, 16, 8},
    {"jump_large", jump, MIB, 4096, 8},
    {"into_free_link", into_free, 64, 0, 8},
    {"into_free_all", into_free, 64, 0, 64},
    {"into_free_large", into_free, 262144, 0, 64},
    {"of_calloc", of_calloc, 40, 40, 1},
    {"of_aligned", of_aligned, 64, 64, 1},
    {"of_page_aligned", of_page_aligned, 4096, 4096, 1},
    {"of_realloc_shrunk", of_realloc_shrunk, 36, 36, 1},
    {"of_realloc_grown", of_realloc_grown, 36, 36, 1},
    {"of_usable_size", of_usable, 100, 0, 1},
    {"never_freed", never_freed, 64, 64, 8},
    {0},
};

/* The bug is in the follower, whose neighbour in front is live. */
static void in_front(const struct bug *bug)
{
    size_t follower = 0;
    crowd_take(&crowd, bug->size);
    crowd_nearest(&crowd, &follower);
    bug_begin();
    spoil(crowd.blocks[follower] + bug->at, bug->length);
    bug_end();
    effect(crowd_changed(&crowd, follower) != 0);
    finish(bug->size);
}

const struct bug underflow[] = {
    {"by_1", in_front, 64, -1, 1},
    {"by_8", in_front, 64, -8, 8},
    {"by_16", in_front, 64, -16, 16},
    {"by_64", in_front, 64, -64, 64},
    {"of_24_by_1", in_front, 24, -1, 1},
    {"of_1000_by_8", in_front, 1000, -8, 8},
    {"of_4096_by_8", in_front, 4096, -8, 8},
    {"of_4096_by_4096", in_front, 4096, -4096, 4096},
    {"of_131072_by_8", in_front, 131072, -8, 8},
    {"of_262144_by_1", in_front, 262144, -1, 1},
    {"of_1_mib_by_16", in_front, MIB, -16, 16},
    {"of_32_mib_by_16", in_front, 32 * MIB, -16, 16},
    {0},
};

/* Reads from `at` up to `length` bytes past the neighbour's start: the effect is the neighbour's data. */
static void reads(const struct bug *bug)
{
    size_t follower;
    crowd_take(&crowd, bug->size);
    size_t index = crowd_nearest(&crowd, &follower);
    size_t distance = (size_t)(crowd.blocks[follower] - crowd.blocks[index]);
    fill(crowd.blocks[follower], bug->size < 64 ? bug->size : 64, 'S');
    bug_begin();
    bool seen = holds(crowd.blocks[index] + bug->at, distance - (size_t)bug->at + bug->length, 'S');
    bug_end();
    effect(seen);
    finish(bug->size);
}

const struct bug overread[] = {
    {"of_64", reads, 64, 64, 64},       {"of_24", reads, 24, 24, 24},
    {"of_4096", reads, 4096, 4096, 64}, {"of_262144", reads, 262144, 262144, 64},
    {"of_1_mib", reads, MIB, MIB, 64},  {0},
};
