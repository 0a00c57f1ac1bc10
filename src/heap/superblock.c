/* SPDX-License-Identifier: MIT */
#include "heap/superblock.h"

#include <string.h>

#include "heap/shuffle.h"
#include "os/os.h"

/* ---- units ---- */

static unsigned unit_shift(const struct superblock *s)
{
    unsigned shift = SLICE_SHIFT - top_bit(UNITS_MAX) + top_bit(2u * superblock_slices(s) - 1);
    unsigned page = top_bit(os_page_bytes);
    return shift > page ? shift : page;
}

/* From the first slice on. */
static size_t offset_of_block(const struct superblock *s, size_t i)
{
    return (size_t)(superblock_block(s, i) - superblock_start(s));
}

/* How many blocks end before this offset, a multiple of the unit. */
static unsigned blocks_before(const struct superblock *s, size_t offset)
{
    const size_t gap = offset_of_block(s, 0);
    return offset < gap ? 0 : (unsigned)((offset - gap) / s->block_bytes);
}

/* The units block number `i` touches. */
static unit_set units_of_block(const struct superblock *s, unsigned shift, unsigned i)
{
    size_t first = offset_of_block(s, i);
    unsigned from = (unsigned)(first >> shift);
    unsigned to = (unsigned)((first + s->block_bytes - 1) >> shift);
    return units_run(from, to - from + 1);
}

static bool block_touches(const struct superblock *s, unsigned shift, unsigned i, unit_set units)
{
    return (units_of_block(s, shift, i) & units) != 0;
}

static unit_set all_units(const struct superblock *s, unsigned shift)
{
    const unsigned first = (unsigned)(offset_of_block(s, 0) >> shift);
    const unsigned end = (unsigned)((offset_of_block(s, s->blocks) + (1ul << shift) - 1) >> shift);
    return units_run(first, end - first);
}

unit_set superblock_units_of_slice(const struct superblock *s, unsigned i)
{
    const unsigned per_slice = 1u << (SLICE_SHIFT - unit_shift(s));
    return units_run(i * per_slice, per_slice);
}

/* The units of slices it lent. */
static unit_set lent_units(const struct superblock *s)
{
    unit_set units = 0;
    if (likely(!s->has_lent))
        return 0;
    for (unsigned i = 1; i < superblock_slices(s); i++)
        units |= superblock_has_slice(s, i) ? 0 : superblock_units_of_slice(s, i);
    return units;
}

/* The units of slices that were used before they became its own. */
static unit_set used_units(const struct superblock *s)
{
    unit_set units = 0;
    for (unsigned i = 0; i < superblock_slices(s); i++)
        units |= slice_at(superblock_first_slice(s) + i)->content == content_used ? superblock_units_of_slice(s, i) : 0;
    return units;
}

/* How many blocks touch none of these units. */
static unsigned blocks_without(const struct superblock *s, unit_set gone)
{
    unsigned shift = unit_shift(s), blocks = 0;
    for (unsigned i = 0; i < s->blocks; i++)
        blocks += !block_touches(s, shift, i, gone);
    return blocks;
}

/* All units of those blocks. */
static unit_set units_without(const struct superblock *s, unit_set gone)
{
    unsigned shift = unit_shift(s);
    unit_set all = 0;
    for (unsigned i = 0; i < s->blocks; i++) {
        unit_set units = units_of_block(s, shift, i);
        all |= (units & gone) == 0 ? units : 0;
    }
    return all;
}

/* The units that are not carved or were lent: a block that touches one of them does not exist. */
static unit_set units_gone(const struct superblock *s)
{
    return s->uncarved | lent_units(s);
}

bool superblock_is_block(const struct superblock *s, const void *p)
{
    return superblock_is_block_start(s, p) &&
           !block_touches(s, unit_shift(s), superblock_block_number(s, p), units_gone(s));
}

size_t superblock_count_whole(const struct superblock *s)
{
    const unit_set gone = units_gone(s);
    unsigned blocks = gone == 0 ? s->blocks : blocks_before(s, (size_t)units_first(gone) << unit_shift(s));
    return (size_t)blocks * s->block_bytes;
}

static void set_uncarved(struct superblock *s, unit_set uncarved)
{
    s->uncarved = uncarved;
    __atomic_store_n(&s->whole_bytes, (uint32_t)superblock_count_whole(s), __ATOMIC_RELAXED);
}

/* ---- birth ---- */

/* A block alone, in the place of another slice's chain, is no batch. */
static uint8_t batch_of(const struct superblock *s)
{
    const size_t batch = min_size(min_size(BATCH_BLOCKS, BATCH_BYTES / s->block_bytes), s->blocks / BATCH_PART);
    return batch < 2 ? 0 : (uint8_t)batch;
}

struct superblock *superblock_format(uint32_t first, unsigned class, unsigned slices)
{
    struct superblock *s = superblock_at_slice(first);
    const struct size_class *row = &size_class[class];
    CHECK(superblock_is_detached(s) && s->slice.kind == slice_unknown); /* it is nobody's */
    ASSERT(slices <= row->slices && slices * SLICE_BYTES >= row->bytes);
    s->freelist = 0;
    s->threshold = THRESHOLD_NEVER;
    s->blocks = (uint16_t)min_size(row->blocks, slices * SLICE_BYTES / row->bytes);
    s->block_bytes = row->bytes;
    s->base = (uintptr_t)slice_address(first + slices) - (size_t)s->blocks * row->bytes;
    s->reciprocal = row->reciprocal;
    atomic_store_explicit(&s->x_remote, 0, memory_order_relaxed);
    s->slice.next = s->slice.prev = SLICE_NONE;
    s->slice.slices = slices;
    s->carved = 0;
    s->class = (uint8_t)class;
    s->group = group_none;
    s->batch = batch_of(s);
    s->was_stale = s->has_holes = s->has_lent = false;
    set_uncarved(s, all_units(s, unit_shift(s)));
    s->dirty = used_units(s);
    ASSERT(slices == (s->blocks == row->blocks ? row->slices : slices_for((size_t)s->blocks * row->bytes)));
    for (unsigned i = 1; i < slices; i++)
        slice_become_tail(slice_at(first + i), i);
    slice_become(&s->slice, slice_superblock);
    return s;
}

bool superblock_is_zero_block(const struct superblock *s, const void *block)
{
    return !block_touches(s, unit_shift(s), superblock_block_number(s, block), s->dirty);
}

/* ---- carving ---- */

/* carve_some is a part of what is carved already, and at least one unit: a program of few blocks touches few pages,
 * and one of many refills rarely.  One carving takes eight page faults or so at most, lest it become a stall. */
static unsigned units_to_carve(const struct superblock *s, unsigned shift, enum carve amount)
{
    const size_t most_bytes = s->block_bytes < 2048 ? 32u << 10 : 16u << 10;
    const unsigned most = (unsigned)max_size(1, most_bytes >> shift);
    const unsigned carved = units_count(all_units(s, shift) & ~s->uncarved);
    if (amount == carve_many)
        return most;
    return amount == carve_least ? 1 : (unsigned)max_size(1, min_size(carved / CARVED_PART, most));
}

/* Links blocks low .. high - 1 in address order. */
static uint64_t link_run(const struct superblock *s, unsigned low, unsigned high)
{
    char *block = superblock_block(s, low);
    const uint64_t step = ((uint64_t)s->block_bytes << FREELIST_COUNT_BITS) - 1; /* next address, one fewer */
    uint64_t list = freelist_pack(block, high - low);
    const uint64_t first = list;
    for (unsigned left = high - low; left > 1; left--) {
        list += step;
        next_set(block, list);
        block += s->block_bytes;
    }
    next_set(block, 0);
    return first;
}

/* The common case: everything from unit `first` on is uncarved. */
static struct carving carve_tail(const struct superblock *s, unsigned shift, unsigned first, enum carve amount)
{
    size_t unit_bytes = 1ul << shift;
    unsigned low = blocks_before(s, first * unit_bytes);
    unsigned units_end = first + units_to_carve(s, shift, amount);
    unsigned block_end = (unsigned)((offset_of_block(s, low + 1) + unit_bytes - 1) >> shift);
    if (units_end < block_end)
        units_end = block_end;
    unsigned high = blocks_before(s, units_end * unit_bytes);
    if (high >= s->blocks)
        return (struct carving){link_run(s, low, s->blocks), s->uncarved};
    return (struct carving){link_run(s, low, high), units_run(first, units_end - first)};
}

/* After a purge the uncarved units can lie anywhere.  Carves the units of one block, the lowest that does not exist and
 * touches nothing lent; and links it with every other block that has all of its units from now on. */
static struct carving carve_hole(const struct superblock *s, unsigned shift, unsigned first)
{
    const unit_set lent = lent_units(s);
    unsigned low = blocks_before(s, (size_t)first << shift);
    while (block_touches(s, shift, low, lent))
        low++;
    const unit_set units = units_of_block(s, shift, low) & s->uncarved;
    const unit_set still_gone = (s->uncarved & ~units) | lent;
    unsigned high = low + 1;
    while (low > 0 && block_touches(s, shift, low - 1, units))
        low--;
    while (high < s->blocks && block_touches(s, shift, high, units))
        high++;
    uint64_t list = 0;
    for (unsigned i = high; i-- > low;) {
        if (block_touches(s, shift, i, still_gone))
            continue;
        char *block = superblock_block(s, i);
        next_set(block, list);
        list = freelist_pack(block, freelist_count(list) + 1);
    }
    return (struct carving){list, units};
}

#ifdef SUTLER_HARDENED
/* Clears the blocks of a list that was just carved whose units may hold something. */
static void clear_blocks(const struct superblock *s, uint64_t list)
{
    for (uint64_t next; list != 0 && s->dirty != 0; list = next) {
        void *block = freelist_top(list);
        next = next_get(block);
        if (superblock_is_zero_block(s, block))
            continue;
        memset(block, 0, s->block_bytes);
        next_set(block, next);
    }
}
#endif

struct carving superblock_carve(const struct superblock *s, enum carve amount)
{
    if (s->uncarved == 0)
        return (struct carving){0, 0};
    unsigned shift = unit_shift(s);
    unsigned first = units_first(s->uncarved);
    unit_set tail = all_units(s, shift) & ~units_run(0, first);
    bool is_tail = s->uncarved == tail && !s->has_lent;
    struct carving carving = is_tail ? carve_tail(s, shift, first, amount) : carve_hole(s, shift, first);
#ifdef SUTLER_HARDENED
    clear_blocks(s, carving.list);
    carving.list = freelist_shuffle(carving.list);
#endif
    return carving;
}

void superblock_count_carving(struct superblock *s, struct carving carving)
{
    ASSERT((carving.units & ~s->uncarved) == 0 && s->carved + freelist_count(carving.list) <= s->blocks);
    set_uncarved(s, s->uncarved & ~carving.units);
    s->carved = (uint16_t)(s->carved + freelist_count(carving.list));
}

void superblock_discount_carving(struct superblock *s, struct carving carving)
{
    ASSERT((carving.units & s->uncarved) == 0 && s->carved >= freelist_count(carving.list));
    set_uncarved(s, s->uncarved | carving.units);
    s->carved = (uint16_t)(s->carved - freelist_count(carving.list));
}

void superblock_begin_anew(struct superblock *s)
{
    ASSERT(superblock_freelist(s) == 0 && !s->has_lent);
    const unit_set all = all_units(s, unit_shift(s));
    s->dirty |= all & ~s->uncarved;
    atomic_thread_fence(memory_order_release); /* a child of fork sees it, if it sees what follows */
    s->carved = 0;
    set_uncarved(s, all);
}

void superblock_recount(struct superblock *s)
{
    s->carved = (uint16_t)blocks_without(s, units_gone(s));
    set_uncarved(s, s->uncarved);
    superblock_forget_lent(s);
}

/* ---- slices lent ---- */

unsigned superblock_capacity_lent(const struct superblock *s)
{
    return blocks_without(s, lent_units(s));
}

unit_set superblock_units_kept(const struct superblock *s)
{
    return units_without(s, units_gone(s));
}

void superblock_forget_lent(struct superblock *s)
{
    if (s->has_lent)
        set_uncarved(s, s->uncarved & units_without(s, lent_units(s)));
}

/* ---- purge: the reverse of carving ---- */

/* The superblock whose list is being rebuilt, and which of its blocks are free: from these the child of a fork in the
 * middle of it can finish. */
static struct rebuilding {
    struct superblock *_Atomic of;
    uint64_t is_free[SUPERBLOCK_BLOCKS_MAX / 64];
} rebuilding[by_lender + 1];

/* Links the free blocks that exist in address order. */
static void finish(struct superblock *s, struct rebuilding *r)
{
    if (atomic_load(&r->of) != s)
        return;
    set_uncarved(s, s->uncarved);
    const unit_set gone = units_gone(s);
    const unsigned shift = unit_shift(s);
    uint64_t list = 0;
    unsigned carved = 0;
    for (unsigned i = s->blocks; i-- > 0;) {
        if (block_touches(s, shift, i, gone))
            continue;
        carved++;
        if ((r->is_free[i / 64] >> (i % 64) & 1) != 0) {
            char *block = superblock_block(s, i);
            next_set(block, list);
            list = freelist_pack(block, freelist_count(list) + 1);
        }
    }
    s->freelist = list;
    s->carved = (uint16_t)carved;
    superblock_forget_lent(s);
    atomic_store(&r->of, NULL);
}

void superblock_finish_uncarving(struct superblock *s)
{
    for (size_t i = 0; i < ARRAY_LEN(rebuilding); i++)
        finish(s, &rebuilding[i]);
}

size_t superblock_unit_bytes(const struct superblock *s)
{
    return 1ul << unit_shift(s);
}

/* Those of `units` that make up whole slices, together with `gone`; not the first, which is never lent. */
static unit_set in_whole_slices(const struct superblock *s, unit_set units, unit_set gone)
{
    unit_set whole = 0;
    for (unsigned i = 1; i < superblock_slices(s); i++) {
        const unit_set slice = superblock_units_of_slice(s, i);
        whole |= (slice & ~(units | gone)) == 0 ? slice : 0;
    }
    return units & whole;
}

unit_set superblock_uncarve(struct superblock *s, enum uncarver by, const char **damage)
{
    struct rebuilding *const r = &rebuilding[by];
    uint64_t list = s->freelist;
    *damage = superblock_check_list(s, list);
    if (*damage != NULL || list == 0)
        return 0;

    uint64_t *is_free = r->is_free;
    memset(is_free, 0, sizeof r->is_free);
    unsigned shift = unit_shift(s);
    for (uint64_t at = list; at != 0; at = next_get(freelist_top(at))) {
        unsigned i = superblock_block_number(s, freelist_top(at));
        is_free[i / 64] |= 1ull << (i % 64);
    }

    /* A unit that a live block touches stays. */
    unit_set kept = 0, gone = units_gone(s);
    for (unsigned i = 0; i < s->blocks; i++) {
        unit_set units = units_of_block(s, shift, i);
        if ((units & gone) == 0 && (is_free[i / 64] >> (i % 64) & 1) == 0)
            kept |= units;
    }
    unit_set dropped = all_units(s, shift) & ~kept & ~gone;
    if (by == by_lender)
        dropped = in_whole_slices(s, dropped, gone | ~all_units(s, shift));
    if (dropped == 0)
        return 0;
    s->dirty |= ~s->uncarved; /* those that stay, too: a block with units on both sides of the border is gone */
    atomic_store(&r->of, s);
    set_uncarved(s, s->uncarved | dropped);
    finish(s, r);
    return dropped;
}
