/* SPDX-License-Identifier: MIT
 *
 * Carving and its reverse in random order, against a reference that knows of every block whether it exists, is free or
 * is in use, and what it must contain.  The two promises: a purge never touches what is in use, not even where a live
 * block reaches into a unit by one byte; and what it purges reads as zeros.
 */
#include "heap/remote.h"
#include "inspect.h"
#include "os/os.h"
#include "unit.h"

#define BLOCKS_MAX 4096

enum state { absent, idle, held };

struct reference {
    struct superblock *s;
    uint8_t state[BLOCKS_MAX];
    uint64_t key[BLOCKS_MAX];
    size_t purges, purged_units, straddlers_kept;
};

static char *block_at(const struct superblock *s, unsigned i)
{
    return superblock_block(s, i);
}

static unsigned number_of(const struct superblock *s, const void *block)
{
    return (unsigned)(((uintptr_t)block - s->base) / s->block_bytes);
}

static void fill(const struct superblock *s, unsigned i, uint64_t key)
{
    uint64_t *words = (uint64_t *)block_at(s, i);
    for (size_t w = 0; w < s->block_bytes / 8; w++)
        words[w] = key + w;
}

static void expect_filled(const struct superblock *s, unsigned i, uint64_t key)
{
    const uint64_t *words = (const uint64_t *)block_at(s, i);
    for (size_t w = 0; w < s->block_bytes / 8; w++)
        EXPECT_MSG(words[w] == key + w, "class %u: block %u in use lost its content at byte %zu", s->class, i, w * 8);
}

static void carve(struct reference *r)
{
    struct superblock *s = r->s;
    struct carving carving = superblock_carve(s, carve_some);
    EXPECT_EQ(carving.list == 0, s->uncarved == 0);
    if (carving.list == 0)
        return;
    for (uint64_t at = carving.list; at != 0; at = next_get(freelist_top(at))) {
        unsigned i = number_of(s, freelist_top(at));
        EXPECT(i < s->blocks);
        EXPECT_MSG(r->state[i] == absent, "class %u: block %u exists and is carved again", s->class, i);
        r->state[i] = idle;
    }
    s->freelist = superblock_join(s, carving.list, s->freelist);
    EXPECT(s->freelist != 0);
    superblock_count_carving(s, carving);
}

static void take(struct reference *r, struct rng *rng)
{
    struct superblock *s = r->s;
    if (s->freelist == 0)
        carve(r);
    void *block = test_take(s);
    if (block == NULL)
        return;
    unsigned i = number_of(s, block);
    EXPECT_EQ(r->state[i], idle);
    r->state[i] = held;
    fill(s, i, r->key[i] = rng_next(rng));
}

static void give(struct reference *r, unsigned i)
{
    expect_filled(r->s, i, r->key[i]);
    r->state[i] = idle;
    test_give(r->s, block_at(r->s, i));
}

static void give_some(struct reference *r, struct rng *rng)
{
    struct superblock *s = r->s;
    unsigned from = (unsigned)rng_below(rng, s->blocks), length = 1;
    if (rng_below(rng, 4) == 0) /* a run, so that whole units come free */
        length = (unsigned)rng_below(rng, s->blocks) + 1;
    for (unsigned i = from; i < s->blocks && length > 0; i++, length--)
        if (r->state[i] == held)
            give(r, i);
}

/* What the caller of superblock_uncarve owes it: the pages, in runs. */
static void purge_units(const struct superblock *s, unit_set units)
{
    size_t unit = unit_bytes_of(s);
    for (unsigned u = 0; u < UNITS_MAX; u++)
        if (units >> u & 1)
            EXPECT(os_purge(superblock_start(s) + u * unit, unit));
}

static void purge(struct reference *r)
{
    struct superblock *s = r->s;
    unit_set needed = 0, before = s->uncarved, covered = 0;
    for (unsigned i = 0; i < s->blocks; i++) {
        unit_set units = units_touched(s, i);
        covered |= units;
        if (r->state[i] == held)
            needed |= units;
    }
    bool any_free = s->freelist != 0;
    unit_set expected = any_free ? covered & ~needed & ~before : 0;
    const char *damage;
    unit_set dropped = superblock_uncarve(s, by_pass, &damage);
    EXPECT(damage == NULL);
    EXPECT(dropped == expected);
    EXPECT(s->uncarved == (before | expected));
    EXPECT_EQ(superblock_unit_bytes(s), unit_bytes_of(s));
    purge_units(s, dropped);
    for (unsigned i = 0; i < s->blocks; i++) {
        unit_set units = units_touched(s, i);
        if (r->state[i] == held)
            expect_filled(s, i, r->key[i]);
        else if (r->state[i] == idle && (units & s->uncarved) != 0)
            r->state[i] = absent;
        if ((units & expected) != 0 && (units & needed) != 0 && r->state[i] == absent)
            r->straddlers_kept++;
    }
    for (unsigned u = 0; u < UNITS_MAX; u++)
        if (expected >> u & 1) {
            const uint64_t *words = (const uint64_t *)(superblock_start(s) + u * unit_bytes_of(s));
            for (size_t w = 0; w < unit_bytes_of(s) / 8; w++)
                EXPECT_MSG(words[w] == 0, "class %u: purged unit %u is not zero at byte %zu", s->class, u, w * 8);
        }
    r->purges += expected != 0;
    r->purged_units += (size_t)units_count(expected);
}

/* The list holds exactly the idle blocks; blocks exist exactly where the reference says. */
static void compare(const struct reference *r)
{
    const struct superblock *s = r->s;
    expect_superblock_sound(s);
    uint8_t listed[BLOCKS_MAX] = {0};
    for (uint64_t at = s->freelist; at != 0; at = next_get(freelist_top(at)))
        listed[number_of(s, freelist_top(at))] = 1;
    unsigned live = 0;
    for (unsigned i = 0; i < s->blocks; i++) {
        EXPECT_EQ(listed[i], r->state[i] == idle);
        EXPECT_EQ(superblock_is_block(s, block_at(s, i)), r->state[i] != absent);
        live += r->state[i] == held;
    }
    EXPECT_EQ(superblock_live(s, s->freelist), live);
    EXPECT_EQ(superblock_available(s, s->freelist), s->blocks - live);
}

static void random_orders(struct reference *r, unsigned c, struct rng *rng)
{
    memset(r->state, absent, sizeof r->state);
    r->s = test_superblock_new(c);
    size_t steps = 40 + 3ul * size_class[c].blocks;
    for (size_t step = 0; step < steps; step++) {
        unsigned what = (unsigned)rng_below(rng, 16);
        bool rare = size_class[c].blocks <= 64 || rng_below(rng, 32) == 0;
        if (what < 9)
            take(r, rng);
        else if (what < 13)
            give_some(r, rng);
        else if (what == 13 && rare)
            carve(r);
        else if (rare) {
            purge(r);
            compare(r);
        }
    }
    for (unsigned i = 0; i < r->s->blocks; i++)
        if (r->state[i] == held)
            give(r, i);
    purge(r);
    compare(r);
    EXPECT_EQ(r->s->carved, 0);
    EXPECT_EQ(r->s->freelist, 0);
    test_superblock_drop(r->s);
}

/* Classes whose blocks are no power of two have blocks across unit borders: those are where carving can go wrong. */
static void a_straddler_waits_for_both_its_units(void)
{
    struct superblock *s = test_superblock_new(size_class_of(1000));
    unsigned c = size_class_of(1400); /* 1408 bytes, units of 4 KiB */
    test_superblock_drop(s);
    s = test_superblock_new(c);
    struct carving first = superblock_carve(s, carve_some);
    EXPECT_EQ(units_count(first.units), 1);
    superblock_count_carving(s, first);
    unsigned straddler = freelist_count(first.list);
    EXPECT(units_count(units_touched(s, straddler)) == 2);
    EXPECT(!superblock_is_block(s, block_at(s, straddler)));
    struct carving second = superblock_carve(s, carve_some);
    EXPECT_EQ((uintptr_t)freelist_top(second.list), (uintptr_t)block_at(s, straddler));
    superblock_count_carving(s, second);
    EXPECT(superblock_is_block(s, block_at(s, straddler)));
    test_superblock_drop(s);
}

static void damage_stops_a_purge(void)
{
    struct superblock *s = test_superblock_new(20);
    test_carve_all(s);
    uint64_t list = s->freelist;
    unit_set uncarved = s->uncarved;
    memset(freelist_top(next_get(freelist_top(list))), 0x5a, 8); /* the second was written to after it was freed */
    const char *damage = NULL;
    EXPECT_EQ(superblock_uncarve(s, by_pass, &damage), 0);
    EXPECT(damage != NULL);
    EXPECT(s->freelist == list && s->uncarved == uncarved && s->carved == s->blocks);
    test_superblock_drop(s);
}

int main(int argc, char **argv)
{
    unit_print_mode();
    unit_watchdog(300);
    struct rng rng = unit_rng();
    a_straddler_waits_for_both_its_units();
    damage_stops_a_purge();
    struct reference *r = unit_map(sizeof *r);
    size_t rounds = unit_option(argc, argv, "--rounds", 6);
    for (size_t round = 0; round < rounds; round++)
        for (unsigned c = 0; c < CLASS_COUNT; c++)
            random_orders(r, c, &rng);
    unit_say("%zu purges, %zu units, %zu straddlers\n", r->purges, r->purged_units, r->straddlers_kept);
    EXPECT(r->purges > 100 && r->straddlers_kept > 100); /* the interesting cases did occur */
    return 0;
}
