/* SPDX-License-Identifier: MIT
 *
 * A superblock whose blocks were freed in no order is handed out in order of address when all of them are free, and is
 * not held for zeros; one that was freed in order keeps its list.  What is taken next comes from as few superblocks as
 * before, and the pages of the rest go back.
 */
#include <stdlib.h>

#include "heap/purge.h"
#include "inspect.h"
#include "unit.h"

#define BYTES 128u
#define SUPERBLOCKS 5u

static char *held[SLICE_BYTES / BYTES * SUPERBLOCKS], *freed[SLICE_BYTES / BYTES], *back[SLICE_BYTES / BYTES];

/* Holds `SUPERBLOCKS` of them; returns a full one that malloc has left, whose blocks, by address, are those in `freed`
 * and no longer in `held`. */
static struct superblock *full_superblock(void)
{
    for (unsigned i = 0; i < ARRAY_LEN(held); i++)
        held[i] = malloc(BYTES);
    struct superblock *s = superblock_of(held[ARRAY_LEN(held) / 2]);
    EXPECT_EQ(s->blocks, ARRAY_LEN(freed));
    EXPECT_EQ(superblock_live(s, superblock_freelist(s)), s->blocks);
    for (unsigned i = 0; i < ARRAY_LEN(held); i++) {
        if (superblock_of(held[i]) != s)
            continue;
        freed[superblock_block_number(s, held[i])] = held[i];
        held[i] = NULL;
    }
    return s;
}

static void shuffle(struct rng *rng, char **block, size_t count)
{
    for (size_t i = count; i > 1; i--) {
        size_t j = rng_below(rng, i);
        char *other = block[j];
        block[j] = block[i - 1];
        block[i - 1] = other;
    }
}

static void free_all_of(struct superblock *s)
{
    for (unsigned i = 0; i < ARRAY_LEN(freed); i++)
        free(freed[i]);
    EXPECT_EQ(superblock_live(s, superblock_freelist(s)), 0);
}

/* All of its blocks, as malloc comes to them. */
static void take_all_of(struct superblock *s)
{
    void *others[SLICE_BYTES / BYTES];
    unsigned count = 0;
    while (superblock_of(back[0] = malloc(BYTES)) != s)
        others[count++] = back[0];
    EXPECT(s->uncarved == 0 || !superblock_is_zero_block(s, superblock_block(s, s->blocks - 1)));
    for (unsigned i = 1; i < ARRAY_LEN(back); i++)
        EXPECT(superblock_of(back[i] = malloc(BYTES)) == s);
    while (count > 0)
        free(others[--count]);
}

static void free_what_is_held(void)
{
    for (unsigned i = 0; i < ARRAY_LEN(held); i++)
        free(held[i]);
    for (unsigned i = 0; i < ARRAY_LEN(back); i++)
        free(back[i]);
    expect_heaps_sound();
}

static void freed_at_random_it_is_carved_again(struct rng *rng)
{
    struct superblock *s = full_superblock();
    shuffle(rng, freed, ARRAY_LEN(freed));
    free_all_of(s);
    take_all_of(s);
    for (unsigned i = 0; i < ARRAY_LEN(back); i++)
        EXPECT(back[i] == superblock_block(s, i));
    free_what_is_held();
}

static void freed_in_order_it_stays_as_it_is(void)
{
    struct superblock *s = full_superblock();
    free_all_of(s);
    EXPECT_EQ(s->carved, s->blocks);
    take_all_of(s);
    for (unsigned i = 0; i < ARRAY_LEN(back); i++)
        EXPECT(back[i] == superblock_block(s, s->blocks - 1 - i));
    free_what_is_held();
}

/* Frees a quarter of many superblocks at random, so that a dozen are empty, and takes as much as four have. */
static void few_are_used_again(struct rng *rng)
{
    enum { bytes = 1024, many = 64 << 10, freed_from = many / 2, freed_count = many / 4, taken = 4096, most = 8 };
    static char *block[many];
    struct superblock *used[most + 1];
    unsigned count = 0;
    for (unsigned i = 0; i < many; i++)
        block[i] = malloc(bytes);
    shuffle(rng, block + freed_from, freed_count);
    for (unsigned i = freed_from; i < freed_from + freed_count; i++)
        free(block[i]);
    for (unsigned i = freed_from; i < freed_from + taken; i++) {
        struct superblock *s = superblock_of(block[i] = malloc(bytes));
        unsigned known = 0;
        while (known < count && used[known] != s)
            known++;
        if (known < count)
            continue;
        EXPECT_MSG(count < most, "%u blocks lie in more than %u superblocks", i + 1 - freed_from, most);
        used[count++] = s;
    }
    heap_purge(purge_force, NULL);
    for (unsigned i = 0; i < count; i++)
        EXPECT(superblock_stale_units(used[i]) == 0);
    for (unsigned i = 0; i < many; i++)
        if (i < freed_from + taken || i >= freed_from + freed_count)
            free(block[i]);
    expect_heaps_sound();
}

int main(void)
{
    unit_print_mode();
    unit_watchdog(60);
    struct rng rng = unit_rng();
    freed_in_order_it_stays_as_it_is();
    freed_at_random_it_is_carved_again(&rng);
    few_are_used_again(&rng);
    return 0;
}
