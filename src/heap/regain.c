/* SPDX-License-Identifier: MIT
 *
 * Regaining: a program goes from blocks of one size to blocks of another.  Each class keeps its active superblock, and
 * some that ran empty, for it may want them again at once (relist.c).  But before pages are used that never were, those
 * of other classes are: so what a heap keeps of all classes together is about what it had at once.  The price is that a
 * superblock's list is checked, and blocks are carved anew (docs/decisions/0036-from-one-size-to-another.md).
 *
 * If most of what the heap has is in superblocks that a few blocks keep, these lend what lies between
 * (docs/decisions/0054-what-few-blocks-keep-is-lent.md).
 */
#include "base/bits.h"
#include "heap/heap.h"
#include "heap/lend.h"
#include "heap/span.h"
#include "heap/turns.h"

/* A look at all classes takes a microsecond, and one that looks for parts, too, up to twenty.  After one that found
 * nothing there is none for so many slices. */
#define REST_SLICES 8u
#define PARTS_REST_SLICES 64u
/* At superblocks of a class that may have parts to lend. */
#define LOOKS_MAX 8u
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

/* Large blocks first: few to check, and much memory. */
static size_t regain_empty(struct heap *h, unsigned wanted, size_t slices)
{
    size_t regained = 0, checked = 0;
    struct superblock *s;
    for (unsigned c = CLASS_COUNT; c-- > 0;)
        while (c != wanted && regained < slices && checked < CHECKS_MAX && (s = find(h, c)) != NULL) {
            const size_t length = superblock_slices(s);
            checked += s->carved;
            if (!(h->active[c] == s ? release_active(h, s) : heap_release(h, s)))
                break;
            regained += length;
        }
    return regained;
}

/* ---- parts of superblocks that hold blocks ---- */

static struct lock lending = LOCK_FREE(rank_tried); /* one heap at a time */

void heap_regain_recover(void)
{
    lock_reset(&lending);
}

/* A quarter of all that is in use, and much, is superblocks of the heap that are mostly free.  (Where it is less, a
 * class of which blocks are freed and taken in turns would lose what it takes again.) */
bool heap_is_mostly_surplus(const struct heap *h)
{
    const size_t least_bytes = 16ul << 20, bytes = (size_t)h->surplus_slices << SLICE_SHIFT;
    return bytes >= least_bytes && bytes >= span_in_use_bytes() / 4;
}

/* There are twice as many slices as blocks: so most of them hold none. */
static bool may_lend(const struct superblock *s)
{
    return !s->has_lent && superblock_live(s, superblock_freelist(s)) * 2 <= superblock_slices(s);
}

/* Returns the slices. */
static size_t lend(struct heap *h, struct superblock *s)
{
    const char *damage;
    if (!heap_detach_listed(h, s, superblock_freelist(s)))
        return 0;
    superblock_uncarve(s, by_lender, &damage);
    if (superblock_quarantine_if(damage, s, "malloc"))
        return 0;
    const size_t slices = superblock_lend(s);
    if (slices > 0)
        turns_note_lent(s->class);
    heap_relist(h, s);
    return slices;
}

/* Looks at the next few superblocks of the class until it has `slices`, or has checked enough blocks. */
static size_t regain_of_class(struct heap *h, unsigned c, size_t slices, size_t *checked)
{
    size_t regained = 0;
    uint32_t at = h->class[c].head[group_mostly_free] - 1;
    for (unsigned looks = 0; looks < LOOKS_MAX && at != SLICE_NONE; looks++) {
        struct superblock *s = superblock_at_slice(at);
        at = s->slice.next;
        if (regained >= slices || *checked >= CHECKS_MAX)
            break;
        if (may_lend(s)) {
            *checked += s->carved;
            regained += lend(h, s);
        }
    }
    return regained;
}

/* What has one slice has none to lend.  Not while another thread is at it. */
static size_t regain_parts(struct heap *h, unsigned wanted, size_t slices)
{
    size_t regained = 0, checked = 0;
    if (!lock_try(&lending))
        return 0;
    for (unsigned c = CLASS_COUNT; c-- > 0;)
        if (c != wanted && size_class[c].slices > 1 && !turns_are_taken_by(c))
            regained += regain_of_class(h, c, slices - min_size(regained, slices), &checked);
    lock_release(&lending);
    return regained;
}

/* ---- both ---- */

bool heap_regain(struct heap *h, unsigned wanted, size_t slices)
{
    ASSERT(lock_is_mine(&h->lock) && !heap_is_global(h));
    if (h->regain_rest > slices) {
        h->regain_rest -= (uint32_t)slices;
        return false;
    }
    turns_note_wanted(wanted, slices);
    size_t regained = regain_empty(h, wanted, slices);
    h->regain_rest = regained == 0 ? REST_SLICES : 0;
    if (regained < slices && heap_is_mostly_surplus(h)) {
        regained += regain_parts(h, wanted, slices - regained);
        h->regain_rest = regained == 0 ? PARTS_REST_SLICES : 0;
    }
    return regained != 0;
}
