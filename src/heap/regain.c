/* SPDX-License-Identifier: MIT
 *
 * Regaining: a program goes from blocks of one size to blocks of another.  Each class keeps its active superblock, and
 * some that ran empty, for it may want them again at once (relist.c).  But before pages are used that never were, those
 * of other classes are: so what a heap keeps of all classes together is about what it had at once.  The price is that a
 * superblock's list is checked, and blocks are carved anew (docs/decisions/0036-from-one-size-to-another.md).
 */
#include "heap/heap.h"

/* A look at all classes takes a microsecond.  After one that found nothing there is none for so many slices. */
#define REST_SLICES 8u
/* As many blocks are checked in ten microseconds or so. */
#define CHECKS_MAX 8192u

/* True if a superblock that holds no block is worth having: not the first, short one of a class of which the program
 * has a few blocks now and then. */
static bool is_worth_regaining(const struct superblock *s)
{
    return superblock_slices(s) > 1 || (size_t)s->carved * s->block_bytes >= SLICE_BYTES / 2;
}

static bool release_active(struct heap *h, struct superblock *s)
{
    if (heap_give_up(h, s) != rcs_done)
        return false;
    if (superblock_live(s, s->freelist) != 0 || freelist_count(atomic_load(&s->x_remote)) != 0) {
        heap_relist(h, s); /* a block was taken meanwhile */
        return false;
    }
    heap_give_back(s, s->freelist);
    return true;
}

/* A superblock of the class that holds no block; or NULL. */
static struct superblock *find(const struct heap *h, unsigned c)
{
    if (h->class[c].head[group_empty] != 0)
        return superblock_at_slice(h->class[c].head[group_empty] - 1);
    struct superblock *s = h->active[c];
    return s != &empty_superblock && superblock_free_blocks(s) == s->carved && is_worth_regaining(s) ? s : NULL;
}

bool heap_regain(struct heap *h, unsigned wanted, size_t slices)
{
    ASSERT(lock_is_mine(&h->lock) && !heap_is_global(h));
    size_t regained = 0, checked = 0;
    struct superblock *s;
    if (h->regain_rest > slices) {
        h->regain_rest -= (uint32_t)slices;
        return false;
    }
    for (unsigned c = CLASS_COUNT; c-- > 0;) /* large blocks first: few to check, and much memory */
        while (c != wanted && regained < slices && checked < CHECKS_MAX && (s = find(h, c)) != NULL) {
            const size_t length = superblock_slices(s);
            checked += s->carved;
            if (!(h->active[c] == s ? release_active(h, s) : heap_release(h, s)))
                break;
            regained += length;
        }
    h->regain_rest = regained == 0 ? REST_SLICES : 0;
    return regained != 0;
}
