/* SPDX-License-Identifier: MIT
 *
 * Use after free: writes and reads through a dangling pointer.  Numbers: the block's size, and where and how much is
 * written or read, counted from its start.
 *
 * A write into memory that has no new owner is harmless if the next owners get sound blocks, and zeros from calloc; a
 * read is harmless if what it sees is neither the old owner's data nor the new one's.
 */
#include "corpus.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

static struct crowd crowd;

/* A block amid live ones, written by its owner; one behind it keeps it from growing where it is. */
static unsigned char *amid(size_t size)
{
    crowd_take(&crowd, size);
    unsigned char *block = take(size);
    take(size);
    fill(block, size, 'S');
    return block;
}

/* What the next owners get: distinct blocks that keep their content, and zeros where they asked for zeros. */
static void look_at_new_owners(size_t size)
{
    static struct crowd later, zeros;
    crowd_take(&later, size);
    zeros.size = size;
    effect(crowd_overlaps(&later) || crowd_changed(&crowd, CROWD_MOST) != 0);
    crowd_give(&later);
    for (zeros.count = 0; zeros.count < later.count; zeros.count++) {
        unsigned char *block = zeros.blocks[zeros.count] = calloc(1, size);
        effect(block != NULL && !is_zero(block, size < MIB ? size : MIB));
    }
    effect(crowd_overlaps(&zeros));
    if (crowd_overlaps(&zeros))
        verdict();
    crowd_give(&zeros);
    crowd_give(&crowd);
    settle(size);
}

static void write_to(unsigned char *block, const struct bug *bug)
{
    bug_begin();
    spoil(block + bug->at, bug->length);
    bug_end();
    look_at_new_owners(bug->size);
}

static void write_near(const struct bug *bug)
{
    unsigned char *block = amid(bug->size);
    give(block);
    write_to(block, bug);
}

static void write_late(const struct bug *bug)
{
    unsigned char *block = amid(bug->size);
    give(block);
    for (size_t i = 0; i < 10000; i++)
        give(take(2 * bug->size + i % 64));
    write_to(block, bug);
}

static void write_after_trim(const struct bug *bug)
{
    unsigned char *block = amid(bug->size);
    give(block);
    malloc_trim(0);
    write_to(block, bug);
}

/* After others of the size, so that a short quarantine has let go of the block and it lies on a free list.  The next
 * owners ask for zeros. */
static void write_listed(const struct bug *bug)
{
    static void *others[64], *zeros[256];
    unsigned char *block = amid(bug->size);
    for (int i = 0; i < 64; i++)
        others[i] = take(bug->size);
    give(block);
    for (int i = 0; i < 64; i++)
        give(others[i]);
    bug_begin();
    spoil(block + bug->at, bug->length);
    bug_end();
    for (int i = 0; i < 256; i++) {
        zeros[i] = calloc(1, bug->size);
        effect(!is_zero(zeros[i], bug->size));
    }
    for (int i = 0; i < 256; i++)
        give(zeros[i]);
    look_at_new_owners(bug->size);
}

static void decrement(const struct bug *bug)
{
    unsigned char *block = amid(bug->size);
    give(block);
    bug_begin();
    --*(volatile int *)(block + bug->at);
    bug_end();
    look_at_new_owners(bug->size);
}

static void zero(const struct bug *bug)
{
    unsigned char *block = amid(bug->size);
    give(block);
    bug_begin();
    fill(block + bug->at, bug->length, 0);
    bug_end();
    look_at_new_owners(bug->size);
}

static void *give_here(void *block)
{
    give(block);
    return NULL;
}

static void write_freed_elsewhere(const struct bug *bug)
{
    unsigned char *block = amid(bug->size);
    in_thread(give_here, block);
    write_to(block, bug);
}

static void *fill_here(void *block)
{
    spoil(block, 16);
    return NULL;
}

static void write_elsewhere(const struct bug *bug)
{
    unsigned char *block = amid(bug->size);
    give(block);
    bug_begin();
    in_thread(fill_here, block);
    bug_end();
    look_at_new_owners(bug->size);
}

static void write_moved(const struct bug *bug)
{
    unsigned char *block = amid(bug->size);
    void *moved = realloc(block, 4 * bug->size + 100);
    if (moved == block)
        verdict(); /* it grew where it is, and there is no old block */
    write_to(block, bug);
}

static void write_shrunk(const struct bug *bug)
{
    unsigned char *block = amid(bug->size);
    unsigned char *shrunk = realloc(block, bug->size / 4);
    bug_begin();
    spoil(block + bug->at, bug->length);
    bug_end();
    give(shrunk);
    look_at_new_owners(bug->size);
}

/* Takes blocks until one of them is the freed one; NULL if none of `most` is. */
static unsigned char *taken_again(const unsigned char *block, size_t size, size_t most)
{
    for (size_t i = 0; i < most; i++) {
        unsigned char *other = take(size);
        fill(other, size, 'N');
        if (other == block)
            return other;
    }
    return NULL;
}

/* The same after a quarantine has run dry. */
static unsigned char *taken_again_late(const unsigned char *block, size_t size)
{
    for (int i = 0; i < 8; i++) {
        settle(size);
        unsigned char *owner = taken_again(block, size, 4096);
        if (owner != NULL)
            return owner;
    }
    return NULL;
}

/* The block has a new owner, in whose data the effect is. */
static void write_owned(unsigned char *block, const unsigned char *owner, const struct bug *bug)
{
    bug_begin();
    spoil(block + bug->at, bug->length);
    bug_end();
    effect(owner != NULL && owner[bug->at] != 'N');
    look_at_new_owners(bug->size);
}

static void write_reused(const struct bug *bug)
{
    unsigned char *block = amid(bug->size);
    give(block);
    write_owned(block, taken_again(block, bug->size, 64), bug);
}

static void write_reused_late(const struct bug *bug)
{
    unsigned char *block = amid(bug->size);
    give(block);
    write_owned(block, taken_again_late(block, bug->size), bug);
}

const struct bug write_after_free[] = {
    {"near_link", write_near, 64, 0, 8},
    {"near_byte", write_near, 64, 0, 1},
    {"near_second_word", write_near, 64, 8, 8},
    {"near_middle", write_near, 64, 32, 1},
    {"near_last_byte", write_near, 64, 63, 1},
    {"near_all", write_near, 64, 0, 64},
    {"near_of_16", write_near, 16, 8, 8},
    {"near_of_1000", write_near, 1000, 500, 8},
    {"near_of_5000", write_near, 5000, 2500, 8},
    {"near_of_20000", write_near, 20000, 10000, 8},
    {"near_of_100000", write_near, 100000, 50000, 8},
    {"near_of_200000", write_near, 200000, 100000, 8},
    {"near_of_1_mib", write_near, MIB, 1000, 8},
    {"near_of_32_mib", write_near, 32 * MIB, 1000, 8},
    {"late", write_late, 64, 16, 8},
    {"after_trim", write_after_trim, 64, 16, 8},
    {"listed", write_listed, 64, 16, 8},
    {"listed_of_1000", write_listed, 1000, 500, 8},
    {"listed_of_20000", write_listed, 20000, 10000, 8},
    {"decrement", decrement, 64, 8, 4},
    {"zero_link", zero, 64, 0, 8},
    {"zero_rest", zero, 64, 8, 56},
    {"freed_elsewhere", write_freed_elsewhere, 64, 16, 8},
    {"freed_elsewhere_link", write_freed_elsewhere, 64, 0, 8},
    {"written_elsewhere", write_elsewhere, 64, 0, 16},
    {"realloc_old", write_moved, 64, 16, 8},
    {"realloc_old_large", write_moved, MIB, 1000, 8},
    {"realloc_tail", write_shrunk, 4096, 4000, 8},
    {"realloc_tail_large", write_shrunk, MIB, 900000, 8},
    {"reused", write_reused, 64, 16, 8},
    {"reused_1000", write_reused, 1000, 16, 8},
    {"reused_1_mib", write_reused, MIB, 16, 8},
    {"reused_late", write_reused_late, 64, 16, 8},
    {0},
};

/* Looks for the owner's secret, of which eight bytes in a row must be left to count. */
static void read_from(const unsigned char *block, const struct bug *bug, unsigned char secret)
{
    bug_begin();
    bool seen = holds(block + bug->at, bug->length, secret);
    bug_end();
    effect(seen);
    crowd_give(&crowd);
}

static void read_near(const struct bug *bug)
{
    unsigned char *block = amid(bug->size);
    give(block);
    read_from(block, bug, 'S');
}

/* Whatever is in the first word of a free block tells something, most often where the heap is. */
static void read_link(const struct bug *bug)
{
    unsigned char *first = amid(bug->size), *block = take(bug->size);
    fill(block, bug->size, 'S');
    give(first);
    give(block);
    bug_begin();
    bool seen = !is_zero(block, bug->length);
    bug_end();
    effect(seen);
}

static void read_late(const struct bug *bug)
{
    unsigned char *block = amid(bug->size);
    give(block);
    for (size_t i = 0; i < 10000; i++)
        give(take(2 * bug->size + i % 64));
    read_from(block, bug, 'S');
}

static void read_freed_elsewhere(const struct bug *bug)
{
    unsigned char *block = amid(bug->size);
    in_thread(give_here, block);
    read_from(block, bug, 'S');
}

static void read_moved(const struct bug *bug)
{
    unsigned char *block = amid(bug->size);
    void *moved = realloc(block, 4 * bug->size + 100);
    if (moved == block)
        verdict();
    read_from(block, bug, 'S');
}

static void read_shrunk(const struct bug *bug)
{
    unsigned char *block = amid(bug->size);
    if (realloc(block, bug->size / 4) == NULL)
        broken("realloc returned NULL");
    read_from(block, bug, 'S');
}

static void read_reused(const struct bug *bug)
{
    unsigned char *block = amid(bug->size);
    give(block);
    taken_again(block, bug->size, 64);
    read_from(block, bug, 'N');
}

static void read_reused_late(const struct bug *bug)
{
    unsigned char *block = amid(bug->size);
    give(block);
    taken_again_late(block, bug->size);
    read_from(block, bug, 'N');
}

const struct bug read_after_free[] = {
    {"link", read_link, 64, 0, 8},
    {"near", read_near, 64, 8, 56},
    {"near_of_1000", read_near, 1000, 8, 992},
    {"near_of_5000", read_near, 5000, 8, 4992},
    {"near_of_100000", read_near, 100000, 8, 99992},
    {"near_of_200000", read_near, 200000, 8, 199992},
    {"near_of_1_mib", read_near, MIB, 0, MIB},
    {"near_of_32_mib", read_near, 32 * MIB, 0, MIB},
    {"late", read_late, 64, 8, 56},
    {"freed_elsewhere", read_freed_elsewhere, 64, 8, 56},
    {"realloc_old", read_moved, 64, 8, 56},
    {"realloc_old_large", read_moved, MIB, 0, MIB},
    {"realloc_tail", read_shrunk, 4096, 2048, 2048},
    {"realloc_tail_large", read_shrunk, MIB, 512 * KIB, 512 * KIB},
    {"reused", read_reused, 64, 8, 56},
    {"reused_1_mib", read_reused, MIB, 8, 4096},
    {"reused_late", read_reused_late, 64, 8, 56},
    {0},
};
