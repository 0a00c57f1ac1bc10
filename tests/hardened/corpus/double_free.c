/* SPDX-License-Identifier: MIT
 *
 * Double free.  The effect is that two owners have the same memory, be it one who took it between the two frees.
 */
#include "corpus.h"

#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>

static struct crowd before, after;

static void *amid(size_t size)
{
    crowd_take(&before, size);
    return take(size);
}

/* Looks whether the next blocks are distinct and nobody's.  If not the damage is done, and the case ends. */
static void look_for_doubles(size_t size)
{
    crowd_take(&after, size);
    bool doubled = crowd_overlaps(&after);
    for (size_t i = 0; i < after.count; i++)
        doubled |= crowd_meets(&before, after.blocks[i], size);
    effect(doubled);
    if (doubled)
        verdict();
    crowd_give(&after);
    crowd_give(&before);
    settle(size);
}

static void give_twice(void *block, size_t size)
{
    bug_begin();
    give(block);
    bug_end();
    look_for_doubles(size);
}

static void at_once(const struct bug *bug)
{
    void *block = amid(bug->size);
    give(block);
    give_twice(block, bug->size);
}

/* With `length` other frees of the same size in between. */
static void with_between(const struct bug *bug)
{
    void *block = amid(bug->size), *others[1000];
    for (size_t i = 0; i < bug->length; i++)
        others[i] = take(bug->size);
    give(block);
    for (size_t i = 0; i < bug->length; i++)
        give(others[i]);
    give_twice(block, bug->size);
}

/* glibc's caches per thread hold seven: an eighth free lands where the check is another one. */
static void behind_a_full_cache(const struct bug *bug)
{
    void *block = amid(bug->size), *filler[7], *other = take(bug->size);
    for (int i = 0; i < 7; i++)
        filler[i] = take(bug->size);
    for (int i = 0; i < 7; i++)
        give(filler[i]);
    give(block);
    give(other);
    give_twice(block, bug->size);
}

static void after_trim(const struct bug *bug)
{
    void *block = amid(bug->size);
    give(block);
    malloc_trim(0);
    give_twice(block, bug->size);
}

/* So long after the first that a quarantine has run dry, yet nobody has the block. */
static void long_after(const struct bug *bug)
{
    void *block = amid(bug->size);
    give(block);
    settle(2 * bug->size);
    give_twice(block, bug->size);
}

/* The block is somebody else's by now: the second free takes it from them. */
static void of_new_owner(const struct bug *bug)
{
    unsigned char *block = amid(bug->size);
    give(block);
    before.count--;
    give(before.blocks[before.count]);
    for (size_t i = 0; i < 64; i++) {
        unsigned char *other = take(bug->size);
        if (other == block) {
            before.blocks[before.count++] = other;
            break;
        }
    }
    give_twice(block, bug->size);
}

static void *give_here(void *block)
{
    give(block);
    return NULL;
}

static void second_elsewhere(const struct bug *bug)
{
    void *block = amid(bug->size);
    give(block);
    bug_begin();
    in_thread(give_here, block);
    bug_end();
    look_for_doubles(bug->size);
}

static void first_elsewhere(const struct bug *bug)
{
    void *block = amid(bug->size);
    in_thread(give_here, block);
    give_twice(block, bug->size);
}

/* It has a heap before: making one takes so long that the thread may be moved between the two. */
static void *give_twice_here(void *block)
{
    give(malloc(1));
    give(block);
    bug_begin();
    give(block);
    bug_end();
    return NULL;
}

static void both_elsewhere(const struct bug *bug)
{
    void *block = amid(bug->size);
    in_thread(give_twice_here, block);
    look_for_doubles(bug->size);
}

static void of_calloc(const struct bug *bug)
{
    crowd_take(&before, bug->size);
    void *block = calloc(1, bug->size);
    give(block);
    give_twice(block, bug->size);
}

static void of_aligned(const struct bug *bug)
{
    crowd_take(&before, bug->size);
    void *block = aligned_alloc(bug->length, bug->size);
    give(block);
    give_twice(block, bug->size);
}

static void by_realloc(const struct bug *bug)
{
    void *block = amid(bug->size);
    give(block);
    bug_begin();
    void *moved = realloc(block, 4 * bug->size + 100);
    bug_end();
    effect(crowd_meets(&before, moved, 4 * bug->size + 100));
    look_for_doubles(bug->size);
}

static void after_realloc_moved(const struct bug *bug)
{
    void *block = amid(bug->size);
    if (realloc(block, 4 * bug->size + 100) == block)
        verdict();
    give_twice(block, bug->size);
}

static void after_realloc_to_zero(const struct bug *bug)
{
    void *block = amid(bug->size);
    if (realloc(block, 0) != NULL)
        verdict(); /* then it was no free */
    give_twice(block, bug->size);
}

const struct bug double_free[] = {
    {"at_once", at_once, 64, 0, 0},
    {"at_once_of_1", at_once, 1, 0, 0},
    {"at_once_of_1000", at_once, 1000, 0, 0},
    {"at_once_of_20000", at_once, 20000, 0, 0},
    {"at_once_of_100000", at_once, 100000, 0, 0},
    {"at_once_of_200000", at_once, 200000, 0, 0},
    {"at_once_of_1_mib", at_once, MIB, 0, 0},
    {"at_once_of_32_mib", at_once, 32 * MIB, 0, 0},
    {"one_between", with_between, 64, 0, 1},
    {"one_between_of_1_mib", with_between, MIB, 0, 1},
    {"thousand_between", with_between, 64, 0, 1000},
    {"behind_a_full_cache", behind_a_full_cache, 64, 0, 0},
    {"after_trim", after_trim, 64, 0, 0},
    {"long_after", long_after, 64, 0, 0},
    {"of_new_owner", of_new_owner, 64, 0, 0},
    {"second_elsewhere", second_elsewhere, 64, 0, 0},
    {"first_elsewhere", first_elsewhere, 64, 0, 0},
    {"both_elsewhere", both_elsewhere, 64, 0, 0},
    {"first_elsewhere_of_1_mib", first_elsewhere, MIB, 0, 0},
    {"of_calloc", of_calloc, 64, 0, 0},
    {"of_aligned", of_aligned, 128, 0, 128},
    {"of_page_aligned", of_aligned, 8192, 0, 4096},
    {"by_realloc", by_realloc, 64, 0, 0},
    {"after_realloc_moved", after_realloc_moved, 64, 0, 0},
    {"after_realloc_to_zero", after_realloc_to_zero, 64, 0, 0},
    {0},
};
