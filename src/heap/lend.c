/* SPDX-License-Identifier: MIT */
#include "heap/lend.h"

#include "heap/span.h"

static bool is_spare(const struct superblock *s, unsigned i, unit_set kept)
{
    return i > 0 && superblock_has_slice(s, i) && (superblock_units_of_slice(s, i) & kept) == 0;
}

unit_set superblock_lend(struct superblock *s)
{
    const uint32_t first = superblock_first_slice(s);
    const unsigned slices = superblock_slices(s);
    const unit_set kept = superblock_units_kept(s);
    unit_set lent = 0;
    for (unsigned i = 1, run; i < slices; i += run + 1) {
        for (run = 0; i + run < slices && is_spare(s, i + run, kept); run++)
            lent |= superblock_units_of_slice(s, i + run);
        if (run == 0)
            continue;
        s->has_lent = true;
        span_give(first + i, run);
    }
    superblock_forget_lent(s);
    return lent;
}

/* From the end: as long as the first slice is not free, the others are known by it.  Without the list, in which there are blocks
 * of all of them: a child of fork that is made half-way takes what is left for a superblock. */
static void give_what_is_left(struct superblock *s)
{
    const uint32_t first = superblock_first_slice(s);
    __atomic_store_n(&s->freelist, 0, __ATOMIC_RELEASE);
    for (unsigned end = superblock_slices(s), run; end > 0; end -= run > 0 ? run : 1) {
        for (run = 0; run < end && superblock_has_slice(s, end - 1 - run);)
            run++;
        if (run > 0)
            span_give(first + end - run, run);
    }
}

void superblock_give(struct superblock *s)
{
    if (unlikely(s->has_lent))
        give_what_is_left(s);
    else
        span_give(superblock_first_slice(s), superblock_slices(s));
}
