/* SPDX-License-Identifier: MIT
 *
 * One superblock at a time, detached and without a heap: every class is carved until nothing is left, its lists are
 * damaged in every way the check knows, and lists are joined.
 */
#include "heap/remote.h"
#include "inspect.h"
#include "unit.h"

#define BLOCKS_MAX 4096

static void expect_block_in_place(const struct superblock *s, const char *block, uint8_t *seen)
{
    size_t offset = (uintptr_t)block - s->base;
    EXPECT(offset % s->block_bytes == 0);
    size_t i = offset / s->block_bytes;
    EXPECT_MSG(i < s->blocks, "block %zu of %u", i, s->blocks);
    EXPECT_MSG(!seen[i], "class %u: block %zu carved twice", s->class, i);
    seen[i] = 1;
}

/* Refill by refill, as a program that frees nothing would. */
static void every_class_is_carved_into_every_block_once(void)
{
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        struct superblock *s = test_superblock_new(c);
        uint8_t seen[BLOCKS_MAX] = {0};
        unsigned found = 0, rounds = 0;
        const unit_set all = s->uncarved;
        const unsigned units_of_a_block = s->block_bytes / superblock_unit_bytes(s) + 2; /* it may lie across */
        while (s->uncarved != 0) {
            unit_set before = s->uncarved;
            struct carving carving = superblock_carve(s, carve_some);
            EXPECT(s->uncarved == before); /* nothing changes before it is published */
            EXPECT(carving.list != 0 && carving.units != 0);
            EXPECT((carving.units & ~before) == 0);
            EXPECT(units_count(carving.units) <= units_count(all & ~before) / CARVED_PART + units_of_a_block);
            superblock_count_carving(s, carving);
            EXPECT(superblock_check_list(s, carving.list) == NULL);
            for (uint64_t at = carving.list; at != 0; at = next_get(freelist_top(at)), found++) {
                expect_block_in_place(s, freelist_top(at), seen);
                memset((char *)freelist_top(at) + 8, 0xa5, s->block_bytes - 8u); /* mapped, and no neighbour's next */
            }
            s->freelist = 0; /* all handed out */
            EXPECT_EQ(s->carved, found);
            expect_superblock_sound(s);
            EXPECT(++rounds <= UNITS_MAX);
        }
        EXPECT_EQ(found, size_class[c].blocks);
        struct carving none = superblock_carve(s, carve_some);
        EXPECT(none.list == 0 && none.units == 0);
        /* The gap that no block covers is never carved, nor are addresses inside blocks. */
        const char *start = superblock_start(s), *end = start + size_class[c].slices * SLICE_BYTES;
        for (const char *p = start; p < end; p++) {
            ptrdiff_t offset = p - superblock_block(s, 0);
            EXPECT_EQ(superblock_is_block(s, p), offset >= 0 && (size_t)offset % s->block_bytes == 0);
        }
        test_superblock_drop(s);
    }
}

/* The first carving is small: a program of few blocks touches few pages. */
static void the_first_carving_is_one_unit_or_one_block(void)
{
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        struct superblock *s = test_superblock_new(c);
        struct carving carving = superblock_carve(s, carve_some);
        size_t unit = unit_bytes_of(s), bytes = size_class[c].bytes;
        size_t gap = (size_t)(superblock_block(s, 0) - superblock_start(s)), end = align_up(gap + bytes, unit);
        EXPECT(carving.units == units_touched(s, 0));
        EXPECT_EQ(freelist_count(carving.list), (end - gap) / bytes);
        test_superblock_drop(s);
    }
}

static void expect_damage(const struct superblock *s, uint64_t list, const char *what)
{
    const char *found = superblock_check_list(s, list);
    EXPECT_MSG(found != NULL && strstr(found, what) != NULL, "expected '%s', got '%s'", what,
               found == NULL ? "(nothing)" : found);
}

static void the_check_names_every_kind_of_damage(void)
{
    for (unsigned c = 0; c < CLASS_COUNT; c += 3) {
        struct superblock *s = test_superblock_new(c);
        test_carve_all(s);
        uint64_t list = s->freelist;
        unsigned count = freelist_count(list);
        char *top = freelist_top(list), *start = superblock_block(s, 0);
        uint64_t next = next_get(top), second_next = next_get(freelist_top(next));
        EXPECT(superblock_check_list(s, list) == NULL);
        EXPECT(superblock_check_list(s, 0) == NULL);

        expect_damage(s, freelist_pack(top, count + 1), "more blocks on the list than exist");
        s->carved--;
        expect_damage(s, list, "more blocks on the list than exist");
        s->carved++;

        expect_damage(s, freelist_pack(top, count - 1), "written to"); /* the first next does not continue the count */
        next_set(top, freelist_pack(freelist_top(next), count - 2));
        expect_damage(s, list, "written to");
        next_set(top, freelist_pack(start - SLICE_BYTES, count - 1));
        expect_damage(s, list, "outside");
        next_set(top, freelist_pack(start + (size_t)s->blocks * s->block_bytes, count - 1));
        expect_damage(s, list, "outside");
        next_set(top, freelist_pack((void *)(uintptr_t)0x414141414140, count - 1));
        expect_damage(s, list, "outside");
        next_set(top, freelist_pack((char *)freelist_top(next) + (s->block_bytes > 16 ? 16 : 8), count - 1));
        expect_damage(s, list, "inside a block");
        next_set(top, freelist_pack(top, count - 1));
        expect_damage(s, list, "twice");
        next_set(freelist_top(next), freelist_pack(top, count - 2));
        next_set(top, next);
        expect_damage(s, list, "twice");
        next_set(freelist_top(next), 0);
        expect_damage(s, list, "shorter");
        next_set(freelist_top(next), second_next);
        EXPECT(superblock_check_list(s, list) == NULL);

        /* Longer: the last block's next goes on to a block that is not on the list. */
        void *taken = test_take(s);
        uint64_t at = s->freelist;
        while (next_get(freelist_top(at)) != 0)
            at = next_get(freelist_top(at));
        next_set(freelist_top(at), freelist_pack(taken, 1));
        expect_damage(s, s->freelist, "longer");
        next_set(freelist_top(at), 0);

        /* What a use after free does most often: text over the next. */
        memcpy(freelist_top(s->freelist), "ABCDEFGH", 8);
        EXPECT(superblock_check_list(s, s->freelist) != NULL);
        test_superblock_drop(s);
    }
}

/* Two lists of one superblock become one, in whatever way the blocks are dealt out. */
/* The head a walk of `steps` comes to; all blocks of `s` are on its list. */
static uint64_t head_after(const struct superblock *s, unsigned steps)
{
    uint64_t at = s->freelist;
    while (steps-- > 0)
        at = next_get(freelist_top(at));
    return at;
}

/* When all blocks are free the quick check says what the walk says: of lists in any order, and with one next, or the
 * head, replaced by another that is possible (as a second free of a block leaves it), by one that is not, or by a live
 * block's data. */
static void all_free_is_told_without_a_walk(struct rng *rng)
{
    for (int round = 0; round < 600; round++) {
        struct superblock *s = test_superblock_new((unsigned)rng_below(rng, CLASS_COUNT));
        void *order[BLOCKS_MAX];
        test_carve_all(s);
        unsigned count = freelist_count(s->freelist);
        for (unsigned i = 0; i < count; i++)
            order[i] = test_take(s);
        for (unsigned i = count; i > 0; i--) {
            size_t at = rng_below(rng, i);
            test_give(s, order[at]);
            order[at] = order[i - 1];
        }
        EXPECT(superblock_check_all_free(s, s->freelist) == NULL);
        uint64_t from = head_after(s, (unsigned)rng_below(rng, count)),
                 other = head_after(s, (unsigned)rng_below(rng, count));
        uint64_t next = next_get(freelist_top(from));
        uint64_t wrong[] = {
            other,    next_get(freelist_top(other)),     freelist_pack(freelist_top(other), freelist_count(next)),
            next + 1, next ^ 1ull << rng_below(rng, 64), rng_next(rng),
            0};
        for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
            next_set(freelist_top(from), wrong[i]);
            const char *walk = superblock_check_list(s, s->freelist),
                       *quick = superblock_check_all_free(s, s->freelist);
            EXPECT_MSG(walk == quick, "%s, %s", walk, quick);
            EXPECT(quick != NULL || freelist_count(wrong[i]) == freelist_count(next));
        }
        next_set(freelist_top(from), next);
        uint64_t head = freelist_pack(freelist_top(other), count);
        EXPECT(superblock_check_list(s, head) == superblock_check_all_free(s, head));
        test_superblock_drop(s);
    }
}

static void joins_keep_every_block(struct rng *rng)
{
    for (int round = 0; round < 300; round++) {
        struct superblock *s = test_superblock_new((unsigned)rng_below(rng, CLASS_COUNT));
        test_carve_all(s);
        uint64_t all = s->freelist, list[2] = {0};
        unsigned parts = (unsigned)rng_below(rng, 4), blocks = s->blocks;
        for (uint64_t at = all; at != 0;) {
            void *block = freelist_top(at);
            at = next_get(block);
            unsigned side = parts < 2 ? parts : parts == 2 ? list[1] == 0 : (unsigned)rng_below(rng, 2);
            next_set(block, list[side]);
            list[side] = freelist_pack(block, freelist_count(list[side]) + 1);
        }
        if (list[0] == 0)
            list[0] = list[1], list[1] = 0; /* a chain is never empty */
        uint64_t joined = superblock_join(s, list[0], list[1]);
        EXPECT_EQ(freelist_count(joined), blocks);
        EXPECT(superblock_check_list(s, joined) == NULL);
        /* A commit that failed: the list below is another one now (or none), and the join is done again. */
        if (list[1] != 0) {
            uint64_t shorter = next_get(freelist_top(list[1]));
            uint64_t again = superblock_join(s, list[0], shorter);
            EXPECT(superblock_check_list(s, again) == NULL);
            EXPECT_EQ(freelist_count(again), blocks - 1);
            again = superblock_join(s, list[0], list[1]);
            EXPECT_EQ(again, joined);
            EXPECT(superblock_check_list(s, joined) == NULL);
        }
        test_superblock_drop(s);
    }
}

static void a_damaged_chain_is_not_joined(void)
{
    struct superblock *s = test_superblock_new(40);
    test_carve_all(s);
    unsigned half = s->blocks / 2u;
    uint64_t at = s->freelist;
    for (unsigned i = 1; i < half; i++)
        at = next_get(freelist_top(at));
    uint64_t below = next_get(freelist_top(at)), chain = freelist_pack(freelist_top(s->freelist), half);
    next_set(freelist_top(at), freelist_pack((char *)s->base - 64, 1));
    EXPECT(superblock_join(s, chain, below) != 0); /* what lies behind the last block is not followed */
    EXPECT_EQ(superblock_join(s, freelist_pack(freelist_top(chain), s->blocks), below), 0); /* too many to be true */
    next_set(freelist_top(chain), freelist_pack((void *)(uintptr_t)0x4242424242, half - 1));
    EXPECT_EQ(superblock_join(s, chain, below), 0);
    test_superblock_drop(s);
}

int main(void)
{
    unit_print_mode();
    unit_watchdog(120);
    struct rng rng = unit_rng();
    every_class_is_carved_into_every_block_once();
    the_first_carving_is_one_unit_or_one_block();
    the_check_names_every_kind_of_damage();
    all_free_is_told_without_a_walk(&rng);
    joins_keep_every_block(&rng);
    a_damaged_chain_is_not_joined();
    return 0;
}
