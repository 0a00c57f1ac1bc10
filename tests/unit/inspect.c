/* SPDX-License-Identifier: MIT */
#include "inspect.h"

#include "heap/remote.h"
#include "heap/signal_safe.h"
#include "heap/span.h"
#include "os/os.h"
#include "unit.h"

#define BLOCKS_MAX 4096

/* ---- one superblock ---- */

/* As its class says, or as many as its blocks take where it is shorter. */
static unsigned slices_of(const struct superblock *s)
{
    const struct size_class *row = &size_class[s->class];
    return s->blocks == row->blocks ? row->slices : (unsigned)slices_for((size_t)s->blocks * row->bytes);
}

size_t unit_bytes_for(unsigned slices)
{
    size_t bytes = SLICE_BYTES / UNITS_MAX; /* and no more than UNITS_MAX of them */
    while (bytes * UNITS_MAX < slices * SLICE_BYTES)
        bytes *= 2;
    return bytes > os_page_bytes ? bytes : os_page_bytes;
}

size_t unit_bytes_of(const struct superblock *s)
{
    return unit_bytes_for(slices_of(s));
}

unit_set units_touched(const struct superblock *s, unsigned i)
{
    /* What no block covers lies in front. */
    size_t unit = unit_bytes_of(s), bytes = size_class[s->class].bytes;
    size_t from = slices_of(s) * SLICE_BYTES - (s->blocks - i) * bytes, to = from + bytes;
    unit_set units = 0;
    for (unsigned u = 0; u < UNITS_MAX; u++)
        if (u * unit < to && (u + 1) * unit > from)
            units |= (unit_set)1 << u;
    return units;
}

enum group group_expected(unsigned blocks, unsigned available)
{
    double part = (double)available / blocks;
    return available == blocks ? group_empty
           : part < 0.125      ? group_nearly_full
           : part < 0.25       ? group_eighth
           : part < 0.5        ? group_quarter
           : part < 0.75       ? group_half
                               : group_mostly_free;
}

/* Marks the blocks of a list; they must be blocks, not marked yet, and as many as the head says. */
static unsigned mark_list(const struct superblock *s, uint64_t list, uint8_t *seen)
{
    unsigned count = freelist_count(list), found = 0;
    for (uint64_t at = list; at != 0; at = next_get(freelist_top(at)), found++) {
        const char *block = freelist_top(at);
        EXPECT_MSG(found < count, "superblock %p: list longer than %u", (void *)superblock_start(s), count);
        EXPECT_MSG(superblock_is_block(s, block), "superblock %p: %p on its list is no block of it",
                   (void *)superblock_start(s), (const void *)block);
        EXPECT_EQ(freelist_count(at), count - found);
        size_t i = ((uintptr_t)block - s->base) / s->block_bytes;
        EXPECT_MSG(!seen[i], "superblock %p: block %zu is free twice", (void *)superblock_start(s), i);
        seen[i] = 1;
    }
    EXPECT_EQ(found, count);
    return found;
}

/* Chain number `i` of the outbox of `h`, if it is of blocks of `s`; else 0. */
static uint64_t chain_in_outbox(const struct heap *h, unsigned i, const struct superblock *s)
{
    uint64_t chain = h->chain[i];
    return chain != 0 && superblock_of(freelist_top(chain)) == s ? chain : 0;
}

static unsigned blocks_in_outboxes(const struct superblock *s)
{
    unsigned blocks = 0;
    for (unsigned n = 0; n < heap_total; n++)
        for (unsigned i = 0; i < OUTBOX_CHAINS; i++)
            blocks += freelist_count(chain_in_outbox(heap_list[n], i, s));
    return blocks;
}

void expect_superblock_sound(const struct superblock *s)
{
    const struct size_class *row = &size_class[s->class];
    EXPECT_EQ(s->block_bytes, row->bytes);
    EXPECT(s->blocks > 0 && s->blocks <= row->blocks);
    EXPECT_EQ(s->reciprocal, row->reciprocal);
    EXPECT_EQ(s->slice.to_head, 0);
    EXPECT_EQ(s->base + (size_t)s->blocks * s->block_bytes,
              (uintptr_t)superblock_start(s) + slices_of(s) * SLICE_BYTES);
    unsigned carved = 0, whole = 0;
    for (unsigned i = 0; i < s->blocks; i++) {
        bool exists = (units_touched(s, i) & s->uncarved) == 0;
        carved += exists;
        whole += exists && whole == i;
    }
    EXPECT_EQ(s->carved, carved);
    for (unsigned i = 0; i < s->blocks; i++)
        EXPECT_MSG(superblock_is_block_quick(s, superblock_block(s, i)) == (i < whole), "block %u of %u", i, whole);
    static __thread uint8_t seen[BLOCKS_MAX];
    memset(seen, 0, sizeof seen);
    mark_list(s, s->freelist, seen);
    mark_list(s, s->x_remote & ~(uint64_t)REMOTE_ARMED, seen);
    for (unsigned n = 0; n < heap_total; n++)
        for (unsigned i = 0; i < OUTBOX_CHAINS; i++)
            mark_list(s, chain_in_outbox(heap_list[n], i, s), seen);
    EXPECT(superblock_check_list(s, s->freelist) == NULL);
    EXPECT_EQ(s->slice.slices, slices_of(s));
    for (unsigned i = 1; i < slices_of(s); i++) {
        EXPECT_EQ(s[i].slice.kind, slice_tail);
        EXPECT(slice_head(slice_at(superblock_first_slice(s) + i)) == &s->slice);
        EXPECT(superblock_owner(&s[i]) == NULL);
    }
}

/* ---- all of them ---- */

/* But for those that have lent slices: which of their blocks exist is asked by lend.c. */
static struct superblock *next_superblock(uint32_t *slice)
{
    while ((*slice = region_slice_from(*slice)) != SLICE_END) {
        struct superblock *s = superblock_at_slice(*slice);
        if (s->slice.kind == slice_superblock && !s->has_lent) {
            *slice += slices_of(s);
            return s;
        }
        ++*slice;
    }
    return NULL;
}

struct class_state class_inspect(unsigned c)
{
    struct class_state state = {0};
    uint32_t slice = 0;
    for (struct superblock *s; (s = next_superblock(&slice)) != NULL;) {
        if (s->class != c)
            continue;
        expect_superblock_sound(s);
        state.superblocks++;
        state.carved += s->carved;
        state.local += freelist_count(s->freelist);
        state.remote += freelist_count(s->x_remote) + blocks_in_outboxes(s);
    }
    EXPECT(state.carved >= state.local + state.remote);
    state.live = state.carved - state.local - state.remote;
    return state;
}

static bool is_on_list(const struct heap *h, const struct superblock *s)
{
    if (s->group >= group_count)
        return false;
    for (uint32_t at = h->class[s->class].head[s->group]; at != 0; at = superblock_at_slice(at - 1)->slice.next + 1)
        if (superblock_at_slice(at - 1) == s)
            return true;
    return false;
}

static void expect_transition_not_lost(const struct superblock *s)
{
    bool has_holes = s->has_holes && freelist_count(s->freelist) != s->carved;
    unsigned available = (has_holes ? 0 : (unsigned)(s->blocks - s->carved)) + freelist_count(s->freelist);
    enum group expected = group_expected(s->blocks, available);
    EXPECT_MSG(s->group == expected, "superblock %p: %u of %u available, listed in group %d, not %d",
               (void *)superblock_start(s), available, s->blocks, s->group, (int)expected);
    EXPECT_MSG(s->threshold == THRESHOLD_NEVER ? s->group == group_empty : s->threshold > freelist_count(s->freelist),
               "superblock %p: %u free, notify at %u: the next step is not armed", (void *)superblock_start(s),
               freelist_count(s->freelist), s->threshold);
    EXPECT_MSG(s->x_remote == REMOTE_ARMED || (s->x_remote == 0 && s->group == group_empty),
               "superblock %p: remote list %llx is not armed and nobody was told", (void *)superblock_start(s),
               (unsigned long long)s->x_remote);
}

static void expect_lists_sound(const struct heap *h)
{
    size_t surplus_slices = 0;
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        const struct class_lists *lists = &h->class[c];
        unsigned listed = 0, surplus = 0;
        for (enum group g = group_nearly_full; g < group_count; g++) {
            uint32_t before = SLICE_NONE;
            for (uint32_t at = lists->head[g]; at != 0;) {
                const struct superblock *s = superblock_at_slice(at - 1);
                EXPECT_EQ(s->slice.kind, slice_superblock);
                EXPECT_EQ(s->class, c);
                EXPECT_EQ(s->group, g);
                EXPECT_EQ(s->slice.prev, before);
                EXPECT(superblock_owner(s) == h);
                EXPECT(h->active[c] != s);
                listed++;
                const bool is_surplus = g == group_mostly_free || g == group_empty;
                surplus += is_surplus;
                surplus_slices += is_surplus ? superblock_slices(s) : 0;
                before = at - 1;
                at = s->slice.next + 1;
            }
        }
        EXPECT_EQ(lists->listed, listed);
        EXPECT_EQ(lists->surplus, surplus);
        const struct superblock *active = h->active[c];
        if (heap_is_global(h))
            EXPECT(active == NULL);
        else
            EXPECT(active == &empty_superblock || (superblock_owner(active) == h && active->class == c));
    }
    EXPECT_EQ(h->surplus_slices, surplus_slices);
}

void expect_heaps_sound(void)
{
    EXPECT_EQ(empty_superblock.freelist, 0);
    EXPECT(superblock_owner(&empty_superblock) == NULL);
    EXPECT_EQ(empty_superblock.x_remote, 0);
    for (unsigned i = 0; i < GLOBAL_HEAPS; i++)
        expect_lists_sound(&global_heap[i]);
    for (unsigned i = 0; i < heap_total; i++)
        expect_lists_sound(heap_list[i]);
    uint32_t slice = 0;
    for (struct superblock *s; (s = next_superblock(&slice)) != NULL;) {
        const struct heap *h = superblock_owner(s);
        EXPECT_MSG(h != NULL, "superblock %p has no owner", (void *)superblock_start(s));
        bool active = h->active[s->class] == s, listed = is_on_list(h, s), pending = s->x_pending_next != 0;
        EXPECT_MSG(!(active && listed), "superblock %p is active and listed", (void *)superblock_start(s));
        EXPECT_MSG(active || listed || pending, "superblock %p is nowhere", (void *)superblock_start(s));
        EXPECT_EQ(s->group != group_none, listed);
        if (active)
            EXPECT_EQ(s->threshold, THRESHOLD_NEVER);
        else if (listed && !pending)
            expect_transition_not_lost(s);
    }
}

/* ---- what slow paths do in passing ---- */

bool test_slow_paths_decay;

void __real_decay_in_passing(void);
void __wrap_decay_in_passing(void);
void __wrap_decay_in_passing(void)
{
    if (test_slow_paths_decay)
        __real_decay_in_passing();
}

/* ---- who has a block ---- */

static _Atomic unsigned char *flag, *flag_of_handlers; /* by address / BLOCK_ALIGNMENT */
static size_t flagged_bytes;

void flags_map(size_t region_bytes)
{
    flagged_bytes = region_bytes;
    flag = unit_map(region_bytes / BLOCK_ALIGNMENT);
    flag_of_handlers = unit_map(REGION_BELOW_BYTES / BLOCK_ALIGNMENT);
}

_Atomic unsigned char *flag_of(const void *block)
{
    if (signal_safe_contains(block))
        return &flag_of_handlers[((uintptr_t)block - (uintptr_t)region_below()) / BLOCK_ALIGNMENT];
    const size_t offset = (uintptr_t)block - hot.region_base;
    EXPECT_MSG(region_contains(block) && offset < flagged_bytes, "%p is not from the region", block);
    return &flag[offset / BLOCK_ALIGNMENT];
}

/* ---- heaps of a test's own ---- */

struct heap *test_heap_new(bool listed)
{
    struct heap *h = unit_map(sizeof *h);
    for (unsigned c = 0; c < CLASS_COUNT; c++)
        h->active[c] = &empty_superblock;
    h->lock = (struct lock)LOCK_FREE(rank_heap);
    h->x_slot = SLOT_NONE;
    h->number = UINT32_MAX;
    if (listed) {
        lock_take(&binding_lock);
        h->number = heap_total;
        heap_list[heap_total] = h;
        heap_total++;
        lock_release(&binding_lock);
    }
    return h;
}

void test_heap_bind(struct heap *h)
{
    static struct heap *own[SLOT_MAX];
    static bool saved;
    for (unsigned slot = 0; slot < slot_count; slot++) {
        if (!saved)
            own[slot] = heap_of_cid[slot];
        __atomic_store_n(&heap_of_cid[slot], h != NULL ? h : own[slot], __ATOMIC_RELEASE);
    }
    saved = h != NULL;
    rcs_fence();
}

struct superblock *test_superblock_of(unsigned c, unsigned slices)
{
    uint32_t first;
    EXPECT(span_take(span_dense, slices, 1, &first));
    return superblock_format(first, c, slices);
}

struct superblock *test_superblock_new(unsigned c)
{
    return test_superblock_of(c, size_class[c].slices);
}

void test_carve_all(struct superblock *s)
{
    while (s->uncarved != 0) {
        struct carving carving = superblock_carve(s, carve_some);
        s->freelist = superblock_join(s, carving.list, s->freelist);
        EXPECT(s->freelist != 0);
        superblock_count_carving(s, carving);
    }
    EXPECT_EQ(freelist_count(s->freelist), s->blocks);
}

void *test_take(struct superblock *s)
{
    void *block = freelist_top(s->freelist);
    if (s->freelist != 0)
        s->freelist = next_get(block);
    return block;
}

void test_give(struct superblock *s, void *block)
{
    next_set(block, s->freelist);
    s->freelist = freelist_pack(block, freelist_count(s->freelist) + 1);
}

void test_superblock_drop(struct superblock *s)
{
    EXPECT(superblock_owner(s) == NULL);
    span_give(superblock_first_slice(s), size_class[s->class].slices);
}
