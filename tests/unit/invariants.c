/* SPDX-License-Identifier: MIT
 *
 * What the library checks of itself is broken here on purpose, one thing at a time, in a child.  superblock_check and
 * superblock_check_listed find each; where a superblock is relisted, purged or recovered, debug builds die of it; and
 * what would hand out memory twice ends the process in any build.
 */
#include "death.h"
#include "heap/arena.h"
#include "heap/audit.h"
#include "heap/purge.h"
#include "heap/span.h"
#include "inspect.h"

#define CLASS_LONG 60u /* of several slices */

/* ---- what superblock_check finds ---- */

static struct superblock *new_half_free(unsigned c)
{
    struct superblock *s = test_superblock_new(c);
    struct carving carving = superblock_carve(s, carve_some);
    superblock_count_carving(s, carving);
    s->freelist = carving.list;
    return s;
}

static void expect_found(const struct superblock *s, const char *wrong)
{
    const char *found = superblock_check(s);
    EXPECT_MSG(found != NULL && strstr(found, wrong) != NULL, "found \"%s\", not \"%s\"", found == NULL ? "" : found,
               wrong);
}

/* Sets `field` to `value`, has it found, and mends it. */
#define EXPECT_FOUND(field, value, wrong)                                                                              \
    do {                                                                                                               \
        __typeof__(0 + (field)) sound = (field);                                                                       \
        (field) = (value);                                                                                             \
        expect_found(s, wrong);                                                                                        \
        (field) = sound;                                                                                               \
        EXPECT(superblock_check(s) == NULL);                                                                           \
    } while (0)

static void descriptors_are_checked(void)
{
    struct superblock *s = new_half_free(CLASS_LONG);
    EXPECT(superblock_slices(s) > 1 && superblock_check(s) == NULL);
    EXPECT_FOUND(s->slice.kind, slice_large, "says that it is none");
    EXPECT_FOUND(s->class, CLASS_COUNT, "says that it is none");
    EXPECT_FOUND(s->block_bytes, s->block_bytes + 16, "not those of its class");
    EXPECT_FOUND(s->blocks, s->blocks + 1, "not those of its class");
    EXPECT_FOUND(s->reciprocal, s->reciprocal + 1, "not those of its class");
    EXPECT_FOUND(s->base, s->base - 16, "does not end where it ends");
    EXPECT_FOUND(s[1].slice.to_head, 0, "belongs to something else");
    EXPECT_FOUND(s[1].owner, (uintptr_t)&global_heap[0], "has an owner");
    s->freelist = 0;
    s->carved = 0;
    test_superblock_drop(s);
}

static void counts_and_lists_are_checked(void)
{
    struct superblock *s = new_half_free(0);
    EXPECT(superblock_check(s) == NULL);
    EXPECT_FOUND(s->carved, s->carved + 1, "miscounted");
    EXPECT_FOUND(s->carved, s->carved - 1, "miscounted");
    EXPECT_FOUND(s->uncarved, s->uncarved & (s->uncarved - 1), "miscounted");
    EXPECT_FOUND(s->whole_bytes, s->whole_bytes + s->block_bytes, "first blocks");
    EXPECT_FOUND(s->x_remote, s->freelist, "on both lists");
    uint64_t *next = freelist_top(s->freelist), was = *next;
    *next = 0; /* as a program may that writes to what it has freed */
    EXPECT(superblock_check(s) == NULL && superblock_check_list(s, s->freelist) != NULL);
    *next = was;
    /* A block of the last unit, which is not carved, freed nevertheless. */
    char *last = superblock_block(s, s->blocks - 1u);
    next_set(last, 0);
    EXPECT_FOUND(s->x_remote, freelist_pack(last, 1), "does not exist");
    test_superblock_drop(s);
}

static void what_is_listed_is_checked(void)
{
    struct heap *h = test_heap_new(true);
    struct superblock *s = new_half_free(0), *t = new_half_free(0);
    test_take(s);
    test_take(t);
    lock_take(&h->lock);
    heap_relist(h, s);
    heap_relist(h, t);
    EXPECT(superblock_check_listed(s, h) == NULL && superblock_check_listed(t, h) == NULL);
    EXPECT(superblock_check_listed(s, &global_heap[0]) != NULL);
    h->active[0] = s;
    EXPECT(superblock_check_listed(s, h) != NULL);
    h->active[0] = &empty_superblock;
    uint32_t next = t->slice.next;
    t->slice.next = SLICE_NONE;
    EXPECT(superblock_check_listed(s, h) != NULL);
    t->slice.next = next;
    unsigned group = s->group, threshold = s->threshold;
    s->group = group_none;
    EXPECT(superblock_check_listed(s, h) != NULL);
    s->group = (uint8_t)group;
    s->threshold = THRESHOLD_NEVER;
    EXPECT(superblock_check_listed(s, h) != NULL);
    s->threshold = (uint16_t)threshold;
    EXPECT(superblock_check_listed(s, h) == NULL);
    lock_release(&h->lock);
}

/* ---- what ends the process ---- */

static void free_span_given_again(void)
{
    uint32_t first;
    EXPECT(span_take(span_large, 4, 1, &first));
    span_give(first, 4);
    uint32_t span = arena_of(first) == &arena[span_large] ? first : SLICE_NONE;
    for (; span != SLICE_NONE && slice_at(span)->kind != slice_free; span--)
        ;
    span_give(span, 4); /* the free span it is a part of by now */
}

static void span_formatted_that_is_in_use(void)
{
    superblock_format(superblock_first_slice(test_superblock_new(0)), 0, size_class[0].slices);
}

static void span_taken_that_is_not_free(void)
{
    uint32_t first = superblock_first_slice(test_superblock_new(0));
    lock_take(&span_lock);
    arena_remove(first);
}

#ifdef SUTLER_DEBUG
static void relisted_with_a_wrong_count(void)
{
    struct heap *h = test_heap_new(true);
    struct superblock *s = new_half_free(0);
    s->carved++;
    lock_take(&h->lock);
    heap_relist(h, s);
}

static void relisted_without_the_lock(void)
{
    heap_relist(test_heap_new(true), new_half_free(0));
}

static void relisted_by_another_heap(void)
{
    struct heap *h = test_heap_new(true);
    struct superblock *s = new_half_free(0);
    superblock_set_owner(s, test_heap_new(true));
    lock_take(&h->lock);
    heap_relist(h, s);
}

static struct superblock *listed(unsigned c)
{
    struct heap *h = test_heap_new(true);
    struct superblock *s = test_superblock_new(c);
    test_carve_all(s);
    test_take(s);
    lock_take(&h->lock);
    heap_relist(h, s);
    lock_release(&h->lock);
    return s;
}

static void purged_with_a_lost_slice(void)
{
    bool changed;
    struct superblock *s = listed(CLASS_LONG);
    s[1].slice.to_head = 0;
    heap_purge(purge_force, &changed);
}

static void recovered_with_a_wrong_count(void)
{
    listed(0)->carved++;
    heap_recover();
}

static void carving_counted_twice(void)
{
    struct superblock *s = test_superblock_new(0);
    struct carving carving = superblock_carve(s, carve_some);
    superblock_count_carving(s, carving);
    superblock_count_carving(s, carving);
}

static void debug_builds_die(void)
{
    EXPECT_DEATH(relisted_with_a_wrong_count, "miscounted");
    EXPECT_DEATH(relisted_without_the_lock, "lock_is_mine");
    EXPECT_DEATH(relisted_by_another_heap, "superblock_owner(s) == h");
    EXPECT_DEATH(purged_with_a_lost_slice, "belongs to something else");
    EXPECT_DEATH(recovered_with_a_wrong_count, "miscounted");
    EXPECT_DEATH(carving_counted_twice, "carving.units");
}
#else
static void debug_builds_die(void)
{
}
#endif

int main(void)
{
    unit_watchdog(60);
    unit_print_mode();
    descriptors_are_checked();
    counts_and_lists_are_checked();
    what_is_listed_is_checked();
    EXPECT_DEATH(free_span_given_again, "slice_is_in_bin");
    EXPECT_DEATH(span_formatted_that_is_in_use, "superblock_is_detached(s) && s->slice.kind == slice_unknown");
    EXPECT_DEATH(span_taken_that_is_not_free, "slice_free");
    debug_builds_die();
    return 0;
}
