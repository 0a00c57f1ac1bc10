/* SPDX-License-Identifier: MIT
 *
 * Spans against a reference: a table with a word for every slice that says whose it is, and whether it was ever
 * written. After every step no two spans overlap, the counters are what the table says, and a span that claims to be
 * zero is.
 */
#include "heap/prefault_pool.h"
#include "heap/span.h"
#include "heap/span_cache.h"

#include <pthread.h>

#include "heap/ample.h"
#include "heap/large.h"
#include "heap/pass.h"
#include "heap/purge.h"
#include "inspect.h"
#include "os/os.h"
#include "unit.h"

#define SLICES_MAX 65536u /* 4 GiB of region: far more than these tests open */
#define HELD_MAX   256
#define OPEN_MAX   1200u /* slices in use at most: freed together, they exceed what the cache of large blocks may keep \
                          */

struct held {
    uint32_t first;
    uint32_t slices;
    uint64_t key;
};

static struct held held[HELD_MAX];
static unsigned held_count;
static size_t held_slices;
static uint8_t *taken; /* by slice: in use by this test */
static uint8_t *dirty; /* by slice: free, after having been in use by this test */
static struct span_counts start;

static size_t dirty_slices;

static void set_dirty(size_t slice, bool is)
{
    dirty_slices += (size_t)is - dirty[slice];
    dirty[slice] = is;
}

/* What may be kept where there is no manager. */
static size_t dirty_bound(void)
{
    struct span_counts now = span_counts();
    return max_size(max_size((size_t)64 << 20, now.opened_bytes / 4), now.in_use_bytes / 2);
}

static void mark_taken(uint32_t first, size_t slices)
{
    EXPECT(first + slices <= SLICES_MAX);
    for (size_t i = 0; i < slices; i++) {
        EXPECT_MSG(!taken[first + i], "slice %zu handed out twice", first + i);
        EXPECT(region_contains(slice_address((uint32_t)(first + i))));
        taken[first + i] = 1;
        set_dirty(first + i, false);
    }
    held_slices += slices;
}

static void mark_given(uint32_t first, size_t slices)
{
    for (size_t i = 0; i < slices; i++) {
        EXPECT(taken[first + i]);
        taken[first + i] = 0;
        set_dirty(first + i, true);
    }
    held_slices -= slices;
    bool large = slices << SLICE_SHIFT >= (size_t)2 << 20;
    if (large && start.dirty_bytes + (dirty_slices << SLICE_SHIFT) > dirty_bound())
        for (size_t i = 0; i < slices; i++)
            set_dirty(first + i, false); /* goes back to the system at once */
}

/* First, middle and last words of each slice: enough to see who else writes there. */
static void stamp(const struct held *h, uint32_t from)
{
    for (uint32_t i = from; i < h->slices; i++) {
        uint64_t *words = slice_address(h->first + i);
        words[0] = words[SLICE_BYTES / 16] = words[SLICE_BYTES / 8 - 1] = h->key + i;
    }
}

static void expect_stamped(const struct held *h)
{
    for (uint32_t i = 0; i < h->slices; i++) {
        const uint64_t *words = slice_address(h->first + i);
        EXPECT(words[0] == h->key + i && words[SLICE_BYTES / 16] == h->key + i &&
               words[SLICE_BYTES / 8 - 1] == h->key + i);
    }
}

static void expect_zero_if_claimed(uint32_t first, size_t slices, size_t *claims)
{
    if (!span_is_zero(first, slices))
        return;
    ++*claims;
    const uint64_t *words = slice_address(first);
    for (size_t w = 0; w < slices * SLICE_BYTES / 8; w += w % 512 == 8 ? 496 : 1) /* both ends of every page */
        EXPECT_MSG(words[w] == 0, "span of %zu slices claims zero; byte %zu is not", slices, w * 8);
}

static void expect_counters(void)
{
    struct span_counts now = span_counts();
    EXPECT_EQ((now.in_use_bytes - start.in_use_bytes) >> SLICE_SHIFT, held_slices);
    EXPECT_EQ((now.dirty_bytes - start.dirty_bytes) >> SLICE_SHIFT, dirty_slices);
}

static size_t zero_claims;

static void take(struct rng *rng)
{
    size_t slices = rng_below(rng, 8) == 0 ? 1 + rng_below(rng, 80) : 1 + rng_below(rng, 8);
    size_t align = rng_below(rng, 3) == 0 ? 1ul << rng_below(rng, 7) : 1;
    if (held_count == HELD_MAX || held_slices + slices > OPEN_MAX)
        return;
    struct held *h = &held[held_count++];
    uint32_t first;
    EXPECT(span_take(span_dense, slices, align, &first));
    EXPECT_EQ((uintptr_t)slice_address(first) % (align << SLICE_SHIFT), 0);
    *h = (struct held){first, (uint32_t)slices, rng_next(rng)};
    mark_taken(first, slices);
    expect_zero_if_claimed(first, slices, &zero_claims);
    stamp(h, 0);
}

static void give(struct rng *rng)
{
    if (held_count == 0)
        return;
    struct held *h = &held[rng_below(rng, held_count)];
    expect_stamped(h);
    mark_given(h->first, h->slices);
    span_give_freed(h->first, h->slices);
    *h = held[--held_count];
}

static void extend_or_shrink(struct rng *rng, size_t *extended)
{
    if (held_count == 0)
        return;
    struct held *h = &held[rng_below(rng, held_count)];
    if (h->slices > 1 && rng_below(rng, 2) == 0) {
        uint32_t keep = 1 + (uint32_t)rng_below(rng, h->slices - 1);
        mark_given(h->first + keep, h->slices - keep);
        span_give_freed(h->first + keep, h->slices - keep);
        h->slices = keep;
        return;
    }
    uint32_t end = h->first + h->slices, more = 1 + (uint32_t)rng_below(rng, 12);
    if (!span_extend(end, more))
        return;
    ++*extended;
    mark_taken(end, more);
    expect_zero_if_claimed(end, more, &zero_claims);
    h->slices += more;
    stamp(h, h->slices - more);
}

static void purge_all(void)
{
    size_t expected = (dirty_slices << SLICE_SHIFT) + prefault_pool_counts().reserve_bytes;
    size_t before = span_counts().purged_bytes;
    bool changed = false;
    EXPECT_EQ(span_purge(purge_force, 0, &changed), expected + start.dirty_bytes);
    EXPECT_EQ(span_counts().purged_bytes - before, expected + start.dirty_bytes);
    start.dirty_bytes = 0;
    memset(dirty, 0, SLICES_MAX);
    dirty_slices = 0;
}

static void random_walk(struct rng *rng, uint64_t steps)
{
    size_t extended = 0;
    for (uint64_t step = 0; step < steps; step++) {
        unsigned what = (unsigned)rng_below(rng, 64);
        if (what < 26)
            take(rng);
        else if (what < 50)
            give(rng);
        else if (what < 63)
            extend_or_shrink(rng, &extended);
        else if (rng_below(rng, 8) == 0)
            purge_all();
        if (step % 64 == 0)
            expect_counters();
    }
    unsigned left = held_count;
    while (held_count > 0)
        give(rng);
    EXPECT_EQ(held_slices, 0);
    expect_counters();
    unit_say("%u held at the end, %zu extensions, %zu claims of zero\n", left, extended, zero_claims);
    EXPECT(extended > 20 && zero_claims > 20);
}

/* Given back in any order, neighbours become one span again: the whole can be taken at once without opening more. */
static void neighbours_merge(struct rng *rng)
{
    enum { parts = 40 };
    uint32_t whole, first[parts], order[parts];
    const size_t each = 5;
    EXPECT(span_take(span_dense, parts * each, 1, &whole));
    for (uint32_t i = 0; i < parts; i++)
        first[i] = whole + i * (uint32_t)each, order[i] = i;
    for (int round = 0; round < 50; round++) {
        size_t opened = span_counts().opened_bytes;
        for (uint32_t i = parts; i-- > 1;) {
            uint32_t k = (uint32_t)rng_below(rng, i + 1), t = order[i];
            order[i] = order[k], order[k] = t;
        }
        for (uint32_t i = 0; i < parts; i++)
            span_give(first[order[i]], each);
        const struct slice *s = slice_at(whole);
        bool found = false; /* the free span may have merged with others around it, too */
        for (uint32_t at = whole + 1; at-- > 0 && !found;)
            if (slice_at(at)->kind == slice_free) {
                found = at + slice_at(at)->slices >= whole + parts * each;
                break;
            }
        EXPECT_MSG(found, "the parts did not merge (first slice's kind is %d)", s->kind);
        uint32_t again[parts];
        for (uint32_t i = 0; i < parts; i++) /* taken elsewhere or here: all of it fits in what is open */
            EXPECT(span_take(span_dense, each, 1, &again[i]));
        EXPECT_EQ(span_counts().opened_bytes, opened);
        for (uint32_t i = 0; i < parts; i++)
            span_give(again[i], each);
        EXPECT(span_take(span_dense, parts * each, 1, &whole));
        EXPECT_EQ(span_counts().opened_bytes, opened);
        for (uint32_t i = 0; i < parts; i++)
            first[i] = whole + i * (uint32_t)each;
    }
    span_give(whole, parts * each);
}

/* Two passes of the clock: what was there at the first pass is purged at the second, nothing younger. */
static void only_aged_spans_are_purged_by_the_clock(void)
{
    bool changed = false;
    span_purge(purge_force, 0, &changed);
    uint32_t a, fence, b;
    EXPECT(span_take(span_dense, 3, 1, &a) && span_take(span_dense, 1, 1, &fence) && span_take(span_dense, 3, 1, &b));
    span_give(a, 3);
    size_t one = 3 * SLICE_BYTES;
    changed = false;
    EXPECT_EQ(span_purge(purge_decay, 0, &changed), 0);
    EXPECT(changed);
    span_give(b, 3);
    changed = false;
    size_t purged = span_purge(purge_decay, 0, &changed);
    EXPECT(purged == one || purged == 0); /* 0: b merged with a, which makes it a new span */
    changed = false;
    EXPECT_EQ(purged + span_purge(purge_decay, 0, &changed), 2 * one);
    EXPECT_EQ(span_purge(purge_decay, 0, &changed), 0);
    span_give(fence, 1);
}

/* Large blocks freed beyond the bound go back at once. */
static void the_cache_of_large_blocks_is_bounded(void)
{
    enum { count = 40 };
    const size_t slices = 64; /* 4 MiB */
    static uint32_t first[count];
    for (int i = 0; i < count; i++) {
        EXPECT(span_take(span_dense, slices, 1, &first[i]));
        memset(slice_address(first[i]), 0x3c, 4096);
    }
    for (int i = 0; i < count; i++) {
        span_give_freed(first[i], slices);
        EXPECT(span_counts().dirty_bytes <= dirty_bound());
    }
    EXPECT(span_counts().dirty_bytes > (size_t)32 << 20); /* and what fits is kept */
}

/* So is that of those of exactly the length that is kept for each cid as well, one of which drives out another. */
static void so_are_those_that_are_kept(void)
{
    enum { count = 150 };
    static void *block[count];
    for (int i = 0; i < count; i++)
        EXPECT((block[i] = malloc(SPAN_CACHE_SLICES_MAX * SLICE_BYTES)) != NULL);
    for (int i = 0; i < count; i++)
        free(block[i]);
    span_cache_give_back();
    EXPECT(span_counts().dirty_bytes <= dirty_bound() + SPAN_CACHE_SLICES_MAX * SLICE_BYTES);
}

static unsigned purges;

/* The linker puts this in the place of the real one: who frees purges by it. */
bool __real_os_purge(void *address, size_t size);
bool __wrap_os_purge(void *address, size_t size);
bool __wrap_os_purge(void *address, size_t size)
{
    purges++;
    return __real_os_purge(address, size);
}

/* Frees 160 MiB in pieces of 4. */
static void free_much(void)
{
    enum { count = 40, slices = 64 };
    static uint32_t first[count];
    for (int i = 0; i < count; i++)
        EXPECT(span_take(span_large, slices, 1, &first[i]));
    purges = 0;
    for (int i = 0; i < count; i++)
        span_give_freed(first[i], slices);
}

/* A superblock's memory, which malloc may be giving back under its heap's lock, does not. */
static void other_spans_do_not_go_at_once(void)
{
    enum { count = 40, slices = 64 };
    static uint32_t first[count];
    const size_t before = span_counts().dirty_bytes;
    for (int i = 0; i < count; i++)
        EXPECT(span_take(span_dense, slices, 1, &first[i]));
    const size_t less = before - span_counts().dirty_bytes; /* of what was there */
    purges = 0;
    for (int i = 0; i < count; i++)
        span_give(first[i], slices);
    EXPECT_EQ(purges, 0);
    EXPECT_EQ(span_counts().dirty_bytes, before - less + count * slices * SLICE_BYTES);
}

/* Where the manager has found memory ample, the thread that frees gives nothing back, and the clock does, in two
 * passes; elsewhere there is a bound. */
static void with_ample_memory_the_clock_gives_back(void)
{
    const uint64_t soon_ns = os_now_ns() + 600000000000ull;
    bool changed = false;
    span_purge(purge_force, 0, &changed);
    size_t before = span_counts().dirty_bytes, bound = dirty_bound();
    atomic_store(&unmap_is_async, true);
    ample_allow((size_t)1 << 30, soon_ns, SIZE_MAX);
    free_much();
    EXPECT_EQ(purges, 0);
    size_t much = span_counts().dirty_bytes - before;
    EXPECT(much >= (size_t)160 << 20 && much > bound);
    EXPECT_EQ(span_purge(purge_decay, 0, &changed), 0);
    EXPECT_EQ(span_purge(purge_decay, 0, &changed), much);

    ample_allow((size_t)100 << 20, soon_ns, SIZE_MAX); /* so much, and no more */
    free_much();
    EXPECT(purges > 0 && span_counts().dirty_bytes <= max_size((size_t)100 << 20, dirty_bound()));
    ample_allow((size_t)1 << 30, os_now_ns(), SIZE_MAX); /* no longer */
    free_much();
    EXPECT(purges > 0 && span_counts().dirty_bytes <= dirty_bound());
    atomic_store(&unmap_is_async, false);
    ample_allow((size_t)1 << 30, soon_ns, SIZE_MAX); /* but there is nobody with a clock */
    free_much();
    EXPECT(purges > 0 && span_counts().dirty_bytes <= dirty_bound());
    ample_allow(0, 0, 0);
}

/* A neighbour freed later does not make a span young again. */
static void ages_are_the_slices_own(void)
{
    bool changed = false;
    span_purge(purge_force, 0, &changed);
    const size_t each = 40, bytes = each * SLICE_BYTES;
    uint32_t before, first;
    EXPECT(span_take(span_large, 1 + 3 * each, 1, &before));
    first = before + 1;
    span_give(first, each);
    EXPECT_EQ(span_purge(purge_decay, 0, &changed), 0);
    EXPECT(span_extend(first, each)); /* used meanwhile */
    span_give(first, each);
    EXPECT_EQ(span_purge(purge_decay, 0, &changed), 0);
    span_give(first + (uint32_t)each, each);
    EXPECT_EQ(span_purge(purge_decay, 0, &changed), bytes);
    span_give(first + 2 * (uint32_t)each, each);
    EXPECT_EQ(span_purge(purge_decay, 0, &changed), bytes);
    EXPECT_EQ(span_purge(purge_decay, 0, &changed), bytes);
    EXPECT_EQ(span_purge(purge_decay, 0, &changed), 0);
}

/* One page that the program locked, and freed so, keeps its slice, and no other: not what was merged with it, nor the
 * spans behind it. */
static void what_is_locked_does_not_keep_others(void)
{
    enum { spans = 80, locked_one = 2 };
    bool changed = false;
    uint32_t span[spans], between[spans];
    span_purge(purge_force, 0, &changed);
    for (unsigned i = 0; i < spans; i++) { /* more than a batch, none beside another */
        EXPECT(span_take(span_dense, 3, 1, &span[i]) && span_take(span_dense, 1, 1, &between[i]));
        memset(slice_address(span[i]), 1, 3 * SLICE_BYTES);
    }
    const size_t before = span_counts().dirty_bytes;
    void *page = slice_address(span[locked_one] + 1);
    const bool locked = mlock(page, os_page_bytes) == 0;
    for (unsigned i = 0; i < spans; i++)
        span_give(span[i], 3);
    const size_t kept = locked ? SLICE_BYTES : 0;
    const size_t ahead = prefault_pool_counts().reserve_bytes; /* the test may have been its own manager */
    EXPECT_EQ(span_purge(purge_force, 0, &changed), spans * 3 * SLICE_BYTES + ahead - kept);
    EXPECT_EQ(span_counts().dirty_bytes, before + kept);
    EXPECT_EQ(*(char *)page, kept != 0);
    munlock(page, os_page_bytes);
    EXPECT_EQ(span_purge(purge_force, 0, &changed), kept);
    for (unsigned i = 0; i < spans; i++)
        span_give(between[i], 1);
}

/* Pages that may not be purged (locked memory) stay dirty, and do not count as purged. */
static void what_is_refused_is_not_counted(void)
{
    bool changed = false;
    span_purge(purge_force, 0, &changed);
    struct span_counts before = span_counts();
    uint32_t first;
    EXPECT(span_take(span_dense, 2, 1, &first));
    void *memory = slice_address(first);
    bool locked = mlock(memory, 2 * SLICE_BYTES) == 0;
    span_give(first, 2);
    if (locked) {
        EXPECT_EQ(span_purge(purge_force, 0, &changed), 0);
        EXPECT_EQ(span_counts().purged_bytes, before.purged_bytes);
        EXPECT_EQ(span_counts().dirty_bytes, before.dirty_bytes + 2 * SLICE_BYTES);
        munlock(memory, 2 * SLICE_BYTES);
    }
    EXPECT_EQ(span_purge(purge_force, 0, &changed), 2 * SLICE_BYTES);
}

static _Atomic bool had_lock;

static void *wait_for_pass(void *unused)
{
    pass_begin();
    had_lock = true;
    pass_end();
    return unused;
}

/* Between two batches of a long purge another pass can come in. */
static void others_are_let_in(void)
{
    pthread_t thread;
    bool changed = false;
    pass_begin();
    EXPECT_EQ(pthread_create(&thread, NULL, wait_for_pass, NULL), 0);
    while (!lock_is_contended(&pass_lock))
        os_yield();
    for (int i = 0; i < 10000 && !had_lock; i++) { /* each time it has a moment to wake up in */
        uint32_t first;
        EXPECT(span_take(span_dense, 1, 1, &first));
        span_give(first, 1);
        span_purge(purge_force, 0, &changed);
    }
    EXPECT(had_lock);
    pass_end();
    pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
    unit_print_mode();
    unit_watchdog(120);
    struct rng rng = unit_rng();
    taken = unit_map(SLICES_MAX);
    dirty = unit_map(SLICES_MAX);
    bool changed = false;
    span_purge(purge_force, 0, &changed);
    start = span_counts();
    EXPECT_EQ(start.dirty_bytes, 0);
    random_walk(&rng, unit_option(argc, argv, "--steps", 40000));
    neighbours_merge(&rng);
    only_aged_spans_are_purged_by_the_clock();
    the_cache_of_large_blocks_is_bounded();
    so_are_those_that_are_kept();
    other_spans_do_not_go_at_once();
    with_ample_memory_the_clock_gives_back();
    ages_are_the_slices_own();
    what_is_refused_is_not_counted();
    what_is_locked_does_not_keep_others();
    others_are_let_in();
    return 0;
}
