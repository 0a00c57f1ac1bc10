/* SPDX-License-Identifier: MIT */
#include "heap/span.h"

#include "os/os.h"

#define SPAN_DIRTY_FLOOR (64ul << 20)
#define SPAN_PURGE_MIN (2ul << 20 >> SLICE_SHIFT)

/* Bins: lengths 1 to 32 exactly, then four per doubling. */
#define BIN_EXACT 32u
#define BIN_COUNT (BIN_EXACT + 4 * 24)

struct lock span_lock = LOCK_FREE;

/* Superblocks and large blocks live apart: the one's stretches are dense and asked to be huge pages, the other's may be
 * touched anywhere or hardly at all. */
struct arena {
    uint32_t bin_head[BIN_COUNT]; /* slice number + 1; 0: empty, which makes zeroed memory a valid start */
    uint64_t bin_used[(BIN_COUNT + 63) / 64];
    uint32_t fresh_first, fresh_end; /* opened, never used */
};

static struct arena arena[2];
static struct span_counts counts;
static _Atomic size_t purged_bytes;

static struct arena *arena_of(uint32_t slice)
{
    return &arena[(descriptor_of_slice(slice)->flags & FLAG_LARGE) != 0 ? span_large : span_dense];
}

/* ---- bins ---- */

/* The bin that holds spans of this length. */
static unsigned bin_of(size_t slices)
{
    if (slices <= BIN_EXACT)
        return (unsigned)slices - 1;
    unsigned e = top_bit(slices);
    return BIN_EXACT + (e - 5) * 4 + ((unsigned)(slices >> (e - 2)) & 3);
}

static void bin_insert(uint32_t first, size_t slices)
{
    struct superblock *s = descriptor_of_slice(first), *end = s + slices - 1;
    struct arena *a = arena_of(first);
    unsigned bin = bin_of(slices);
    if (slices > 1) {
        end->kind = slice_free_end;
        end->next = first;
    }
    s->span_slices = slices;
    s->flags &= (uint8_t)~FLAG_AGED;
    s->prev = SLICE_NONE;
    s->next = a->bin_head[bin] - 1;
    if (a->bin_head[bin] != 0)
        descriptor_of_slice(a->bin_head[bin] - 1)->prev = first;
    a->bin_head[bin] = first + 1;
    a->bin_used[bin / 64] |= 1ull << (bin % 64);
    __atomic_store_n(&s->kind, slice_free, __ATOMIC_RELEASE); /* last: span_recover goes by it */
}

static void bin_remove(uint32_t first)
{
    struct superblock *s = descriptor_of_slice(first), *end = s + s->span_slices - 1;
    struct arena *a = arena_of(first);
    unsigned bin = bin_of(s->span_slices);
    if (s->next != SLICE_NONE)
        descriptor_of_slice(s->next)->prev = s->prev;
    if (s->prev != SLICE_NONE)
        descriptor_of_slice(s->prev)->next = s->next;
    else
        a->bin_head[bin] = s->next + 1;
    if (a->bin_head[bin] == 0)
        a->bin_used[bin / 64] &= ~(1ull << (bin % 64));
    __atomic_store_n(&end->kind, slice_unknown, __ATOMIC_RELEASE);
    __atomic_store_n(&s->kind, slice_unknown, __ATOMIC_RELEASE);
}

/* Lowest bin from `bin` on with a span in it, or BIN_COUNT. */
static unsigned bin_next(const struct arena *a, unsigned bin)
{
    for (unsigned i = bin / 64; i < ARRAY_LEN(a->bin_used); i++) {
        uint64_t used = a->bin_used[i] & (i == bin / 64 ? ~0ull << (bin % 64) : ~0ull);
        if (used != 0)
            return i * 64 + low_bit(used);
    }
    return BIN_COUNT;
}

/* A free span of at least `slices`, or SLICE_NONE.  In the first bin lengths differ: a few are looked at. */
static uint32_t find(const struct arena *a, size_t slices)
{
    const unsigned look = 8;
    unsigned bin = bin_of(slices);
    uint32_t at = a->bin_head[bin] - 1;
    for (unsigned i = 0; at != SLICE_NONE && i < look; i++, at = descriptor_of_slice(at)->next)
        if (descriptor_of_slice(at)->span_slices >= slices)
            return at;
    if (bin + 1 >= BIN_COUNT)
        return SLICE_NONE;
    bin = bin_next(a, bin + 1);
    return bin == BIN_COUNT ? SLICE_NONE : a->bin_head[bin] - 1;
}

/* ---- dirty pages ---- */

static bool is_dirty(uint32_t slice)
{
    return (descriptor_of_slice(slice)->flags & FLAG_DIRTY) != 0;
}

static size_t count_dirty(uint32_t first, size_t slices)
{
    size_t dirty = 0;
    for (size_t i = 0; i < slices; i++)
        dirty += is_dirty(first + (uint32_t)i);
    return dirty;
}

bool span_is_zero(uint32_t first, size_t slices)
{
    return count_dirty(first, slices) == 0;
}

/* Returns the pages of the dirty slices among these free ones. */
static size_t purge_free(uint32_t first, size_t slices)
{
    size_t purged = 0;
    for (size_t i = 0; i < slices;) {
        size_t run = 0;
        while (i + run < slices && is_dirty(first + (uint32_t)(i + run)))
            run++;
        if (run > 0 && os_purge(slice_address(first + (uint32_t)i), run << SLICE_SHIFT)) {
            for (size_t k = 0; k < run; k++)
                descriptor_of_slice(first + (uint32_t)(i + k))->flags &= (uint8_t)~FLAG_DIRTY;
            purged += run << SLICE_SHIFT;
        }
        i += run + 1;
    }
    counts.dirty_bytes -= purged;
    span_note_purged(purged);
    return purged;
}

void span_note_purged(size_t bytes)
{
    atomic_fetch_add_explicit(&purged_bytes, bytes, memory_order_relaxed);
}

/* ---- taking ---- */

/* The free span `slice` belongs to the end or the start of, if it may be merged with `other`; else SLICE_NONE. */
static uint32_t free_neighbour(uint32_t slice, uint32_t other)
{
    if (!window_contains(slice_address(slice)) || arena_of(slice) != arena_of(other))
        return SLICE_NONE;
    const struct superblock *s = descriptor_of_slice(slice);
    return s->kind == slice_free ? slice : s->kind == slice_free_end ? s->next : SLICE_NONE;
}

/* Puts free slices into the bins, merged with free neighbours. */
static void insert_merged(uint32_t first, size_t slices)
{
    uint32_t before = first > 0 ? free_neighbour(first - 1, first) : SLICE_NONE;
    uint32_t after = free_neighbour(first + (uint32_t)slices, first);
    if (after != SLICE_NONE) {
        slices += descriptor_of_slice(after)->span_slices;
        bin_remove(after);
    }
    if (before != SLICE_NONE) {
        slices += descriptor_of_slice(before)->span_slices;
        bin_remove(before);
        first = before;
    }
    bin_insert(first, slices);
}

static bool open_more(struct arena *a, size_t slices)
{
    size_t have = a->fresh_end - a->fresh_first, count;
    uint32_t first;
    size_t missing = slices > have ? slices - have : 0;
    if (!window_open(missing, a == &arena[span_dense], &first, &count))
        return false;
    counts.opened_bytes += count << SLICE_SHIFT;
    if (a == &arena[span_large])
        for (size_t i = 0; i < count; i++)
            descriptor_of_slice(first + (uint32_t)i)->flags |= FLAG_LARGE;
    if (first == a->fresh_end && have > 0) {
        a->fresh_end += (uint32_t)count;
        return true;
    }
    if (have > 0)
        insert_merged(a->fresh_first, have); /* the window went on elsewhere */
    a->fresh_first = first;
    a->fresh_end = first + (uint32_t)count;
    return count >= slices || open_more(a, slices);
}

/* `slices` slices from the bins or the fresh end, wherever they lie. */
static uint32_t take_anywhere(struct arena *a, size_t slices)
{
    uint32_t first = find(a, slices);
    if (first != SLICE_NONE) {
        size_t have = descriptor_of_slice(first)->span_slices;
        bin_remove(first);
        if (have > slices)
            bin_insert(first + (uint32_t)slices, have - slices);
        return first;
    }
    if (a->fresh_end - a->fresh_first < slices && !open_more(a, slices))
        return SLICE_NONE;
    first = a->fresh_first;
    a->fresh_first += (uint32_t)slices;
    return first;
}

bool span_take(enum span_use use, size_t slices, size_t align_slices, uint32_t *first)
{
    lock_take(&span_lock);
    size_t slack = align_slices - 1;
    uint32_t at = take_anywhere(&arena[use], slices + slack);
    if (at == SLICE_NONE) /* no more address space or memory: what the other one has */
        at = take_anywhere(&arena[!use], slices + slack);
    if (at != SLICE_NONE && slack > 0) {
        uintptr_t address = (uintptr_t)slice_address(at);
        uint32_t head = (uint32_t)((align_up(address, align_slices << SLICE_SHIFT) - address) >> SLICE_SHIFT);
        uint32_t tail = (uint32_t)slack - head;
        if (tail > 0)
            insert_merged(at + head + (uint32_t)slices, tail);
        if (head > 0)
            insert_merged(at, head);
        at += head;
    }
    if (at != SLICE_NONE) {
        counts.in_use_bytes += slices << SLICE_SHIFT;
        counts.dirty_bytes -= count_dirty(at, slices) << SLICE_SHIFT;
        *first = at;
    }
    lock_release(&span_lock);
    return at != SLICE_NONE;
}

bool span_extend(uint32_t end, size_t more)
{
    bool done = false;
    lock_take(&span_lock);
    struct arena *a = arena_of(end - 1);
    uint32_t next = free_neighbour(end, end - 1);
    if (end == a->fresh_first) {
        done = a->fresh_end - a->fresh_first >= more;
        if (done)
            a->fresh_first += (uint32_t)more;
    } else if (next == end && descriptor_of_slice(end)->span_slices >= more) {
        size_t have = descriptor_of_slice(end)->span_slices;
        bin_remove(end);
        if (have > more)
            bin_insert(end + (uint32_t)more, have - more);
        done = true;
    }
    if (done) {
        counts.in_use_bytes += more << SLICE_SHIFT;
        counts.dirty_bytes -= count_dirty(end, more) << SLICE_SHIFT;
    }
    lock_release(&span_lock);
    return done;
}

/* ---- giving ---- */

void span_give(uint32_t first, size_t slices)
{
    for (size_t i = 0; i < slices; i++) {
        struct superblock *s = descriptor_of_slice(first + (uint32_t)i);
        __atomic_store_n(&s->kind, slice_unknown, __ATOMIC_RELEASE);
        s->flags |= FLAG_DIRTY;
    }
    lock_take(&span_lock);
    counts.in_use_bytes -= slices << SLICE_SHIFT;
    counts.dirty_bytes += slices << SLICE_SHIFT;
    if (slices >= SPAN_PURGE_MIN && counts.dirty_bytes > max_size(SPAN_DIRTY_FLOOR, counts.opened_bytes / 4))
        purge_free(first, slices);
    insert_merged(first, slices);
    lock_release(&span_lock);
}

/* A span that is dirty and was already here at the last pass; else it is marked for the next. */
static bool has_aged(uint32_t first, bool *changed)
{
    struct superblock *s = descriptor_of_slice(first);
    if (count_dirty(first, s->span_slices) == 0)
        return false;
    bool aged = (s->flags & FLAG_AGED) != 0;
    s->flags |= FLAG_AGED;
    *changed |= !aged;
    return aged;
}

static size_t purge_arena(const struct arena *a, bool all, bool *changed)
{
    size_t purged = 0;
    for (unsigned bin = bin_next(a, 0); bin < BIN_COUNT; bin = bin + 1 < BIN_COUNT ? bin_next(a, bin + 1) : BIN_COUNT)
        for (uint32_t at = a->bin_head[bin] - 1; at != SLICE_NONE; at = descriptor_of_slice(at)->next)
            if (all || has_aged(at, changed))
                purged += purge_free(at, descriptor_of_slice(at)->span_slices);
    return purged;
}

size_t span_purge(bool all, bool *changed)
{
    lock_take(&span_lock);
    size_t purged = purge_arena(&arena[span_dense], all, changed) + purge_arena(&arena[span_large], all, changed);
    lock_release(&span_lock);
    return purged;
}

struct span_counts span_counts(void)
{
    struct span_counts copy = counts;
    copy.opened_bytes = window_opened_bytes();
    copy.purged_bytes = atomic_load_explicit(&purged_bytes, memory_order_relaxed);
    return copy;
}

/* How many slices the block or superblock that begins here takes; 0 if none does. */
static size_t slices_in_use(const struct superblock *s)
{
    switch (s->kind) {
    case slice_superblock:
    case slice_quarantine:
        return size_class[s->class].slices;
    case slice_large:
        return s->span_slices;
    default:
        return s->kind == slice_emergency;
    }
}

/* Bins, fresh ends and counts may be half-written.  Of a free span's tags the first slice's kind is stored last and taken
 * away first: it alone is believed, and everything made anew from it. */
void span_recover(void)
{
    for (unsigned i = 0; i < ARRAY_LEN(arena); i++)
        arena[i] = (struct arena){0};
    counts.in_use_bytes = counts.dirty_bytes = 0;
    for (uint32_t slice = window_slice_from(0); slice != SLICE_END; slice = window_slice_from(slice + 1)) {
        struct superblock *s = descriptor_of_slice(slice);
        if (s->kind == slice_free) {
            size_t slices = s->span_slices;
            counts.dirty_bytes += count_dirty(slice, slices) << SLICE_SHIFT;
            bin_insert(slice, slices);
            slice += (uint32_t)slices - 1;
        } else if (s->kind == slice_free_end) {
            s->kind = slice_unknown;
        } else {
            counts.in_use_bytes += slices_in_use(s) << SLICE_SHIFT;
        }
    }
}
