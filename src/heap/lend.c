/* SPDX-License-Identifier: MIT */
#include "heap/lend.h"

#include "heap/allowance.h"
#include "heap/span.h"

static bool is_spare(const struct superblock *s, unsigned i, unit_set kept)
{
    return superblock_has_slice(s, i) && (superblock_units_of_slice(s, i) & kept) == 0;
}

/* A free slice counts as one that has its pages (slice.h); these units have none, so they are counted now. */
static void count_units(const struct superblock *s, unit_set units)
{
    allowance_use((size_t)units_count(units & s->uncarved & ~s->dirty) * superblock_unit_bytes(s));
}

/* Gives its slices from number `from` on without those that have `kept` units; returns how many.  From the end: as long
 * as the first is not free, the others are known by it. */
static size_t give_slices(struct superblock *s, unsigned from, unit_set kept)
{
    const uint32_t first = superblock_first_slice(s);
    size_t given = 0;
    for (unsigned end = superblock_slices(s), run; end > from; end -= run > 0 ? run : 1) {
        for (run = 0; end - run > from && is_spare(s, end - run - 1, kept); run++)
            ;
        if (run == 0)
            continue;
        s->has_lent = true;
        for (unsigned i = end - run; i < end; i++)
            count_units(s, superblock_units_of_slice(s, i));
        span_give(first + end - run, run);
        given += run;
    }
    return given;
}

size_t superblock_lend(struct superblock *s)
{
    const size_t lent = give_slices(s, 1, superblock_units_kept(s));
    superblock_forget_lent(s);
    return lent;
}

/* If slices were lent, without the list, in which there are blocks of all the others: a child of fork that is made
 * half-way takes what is left for a superblock. */
void superblock_give(struct superblock *s)
{
    if (likely(!s->has_lent)) {
        count_units(s, s->uncarved);
        span_give(superblock_first_slice(s), superblock_slices(s));
        return;
    }
    __atomic_store_n(&s->freelist, 0, __ATOMIC_RELEASE);
    give_slices(s, 0, 0);
}
