/* SPDX-License-Identifier: MIT
 *
 * Where no address space is left: superblocks shorter than their class's, superblocks that lend slices, spans squeezed
 * out of what lies in a row, and a thread for which there is no heap.
 */
#include "heap/lend.h"

#include "heap/allowance.h"
#include "heap/arena.h"
#include "heap/meta.h"
#include "heap/remote.h"
#include "heap/span.h"
#include "inspect.h"
#include "unit.h"

static bool system_refuses;

void *__real_os_map(size_t size);
void *__wrap_os_map(size_t size);
void *__wrap_os_map(size_t size)
{
    return system_refuses ? NULL : __real_os_map(size);
}

int __real_os_map_at(void *address, size_t size);
int __wrap_os_map_at(void *address, size_t size);
int __wrap_os_map_at(void *address, size_t size)
{
    return system_refuses ? ENOMEM : __real_os_map_at(address, size);
}

enum { BLOCKS = 4096 };
static bool is_live[BLOCKS];

static char *block_of(const struct superblock *s, unsigned i)
{
    return superblock_block(s, i);
}

static unsigned number_of(const struct superblock *s, const void *block)
{
    return superblock_block_number(s, block);
}

/* ---- shorter ones ---- */

static void short_ones_are_whole(void)
{
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        const struct size_class *row = &size_class[c];
        for (unsigned blocks = 1; blocks * 8u <= row->blocks || blocks == 1; blocks = blocks * 2 + 1) {
            uint32_t first;
            unsigned slices = (unsigned)slices_for((size_t)blocks * row->bytes);
            if (row->slices == 1 || slices >= row->slices)
                continue;
            EXPECT(span_take(span_large, slices, 1, &first));
            struct superblock *s = superblock_format(first, c, slices);
            EXPECT_EQ(superblock_slices(s), slices);
            EXPECT(s->blocks >= blocks && (size_t)s->blocks * row->bytes <= slices * SLICE_BYTES);
            test_carve_all(s);
            EXPECT(superblock_check_list(s, s->freelist) == NULL);
            EXPECT(superblock_is_block(s, block_of(s, s->blocks - 1u)));
            EXPECT(block_of(s, s->blocks) == superblock_start(s) + slices * SLICE_BYTES); /* nothing lies behind them */
            superblock_give(s);
        }
    }
}

/* ---- lending ---- */

/* All of it carved, and about one in `one_in` of its blocks live and filled with its number. */
static struct superblock *new_one(struct rng *rng, unsigned c, unsigned one_in)
{
    struct superblock *s = test_superblock_new(c);
    test_carve_all(s);
    void *block;
    static void *back[BLOCKS];
    unsigned count = 0;
    memset(is_live, 0, sizeof is_live);
    while ((block = test_take(s)) != NULL) {
        unsigned i = number_of(s, block);
        is_live[i] = rng_below(rng, one_in) == 0;
        if (is_live[i])
            memset(block, (int)i, s->block_bytes);
        else
            back[count++] = block;
    }
    while (count > 0)
        test_give(s, back[--count]);
    return s;
}

static void expect_live_untouched(const struct superblock *s)
{
    for (unsigned i = 0; i < s->blocks; i++)
        for (size_t k = 0; is_live[i] && k < s->block_bytes; k += 61)
            EXPECT_EQ(block_of(s, i)[k], (char)i);
}

/* The slices it no longer has hold no block of it, and are the only ones that could be lent. */
static unsigned expect_lent(const struct superblock *s)
{
    unsigned lent = 0;
    for (unsigned slice = 1; slice < superblock_slices(s); slice++) {
        const char *start = superblock_start(s) + slice * SLICE_BYTES;
        bool is_used = false;
        for (unsigned i = 0; i < s->blocks; i++)
            is_used |= is_live[i] && block_of(s, i) < start + SLICE_BYTES && block_of(s, i + 1) > start;
        EXPECT_EQ(superblock_has_slice(s, slice), is_used);
        lent += !is_used;
    }
    EXPECT_EQ(s->has_lent, lent > 0);
    return lent;
}

static void expect_others_are_usable(unsigned slices)
{
    static uint32_t first[64];
    for (unsigned i = 0; i < slices; i++) {
        EXPECT(span_take(span_large, 1, 1, &first[i]));
        memset(slice_address(first[i]), 0xee, SLICE_BYTES);
    }
    for (unsigned i = 0; i < slices; i++)
        span_give(first[i], 1);
}

/* What of it was not lent can be carved again, and nothing else. */
static void expect_room_is_used(struct superblock *s)
{
    unsigned capacity = superblock_capacity(s), live = superblock_live(s, s->freelist);
    while (superblock_is_carvable(s)) {
        struct carving carving = superblock_carve(s, carve_some);
        EXPECT(carving.list != 0);
        s->freelist = superblock_join(s, carving.list, s->freelist);
        EXPECT(s->freelist != 0);
        superblock_count_carving(s, carving);
        unsigned carved = s->carved;
        superblock_recount(s);
        EXPECT_EQ(s->carved, carved);
    }
    EXPECT_EQ(s->carved, capacity);
    EXPECT_EQ(superblock_live(s, s->freelist), live);
    for (uint64_t at = s->freelist; at != 0; at = next_get(freelist_top(at))) {
        char *block = freelist_top(at);
        EXPECT(superblock_is_block(s, block) && !is_live[number_of(s, block)]);
        for (char *byte = block; byte < block + s->block_bytes; byte += SLICE_BYTES / 4)
            EXPECT(superblock_has_slice(s, (unsigned)((byte - superblock_start(s)) / (ptrdiff_t)SLICE_BYTES)));
    }
}

static void lend(struct superblock *s)
{
    const char *damage;
    superblock_uncarve(s, by_pass, &damage);
    EXPECT(damage == NULL);
    superblock_lend(s);
}

static void what_is_free_is_lent(struct rng *rng, unsigned c, unsigned one_in)
{
    size_t before = span_counts().in_use_bytes;
    struct superblock *s = new_one(rng, c, one_in);
    lend(s);
    unsigned lent = expect_lent(s);
    EXPECT_EQ(before + (size_class[c].slices - lent) * SLICE_BYTES, span_counts().in_use_bytes);
    expect_others_are_usable(lent);
    expect_live_untouched(s);
    expect_room_is_used(s);
    /* More is freed, and goes as well. */
    for (unsigned i = 0; i < s->blocks; i++)
        if (is_live[i] && rng_below(rng, 2) == 0) {
            is_live[i] = false;
            test_give(s, block_of(s, i));
        }
    lend(s);
    expect_lent(s);
    expect_live_untouched(s);
    expect_room_is_used(s);
    superblock_give(s);
    EXPECT_EQ(span_counts().in_use_bytes, before);
}

/* A free span counts as one that has its pages: what is lent without them counts as taken then. */
static void what_has_no_pages_counts_when_lent(struct rng *rng, bool is_purged)
{
    struct superblock *s = new_one(rng, size_class_of(2048), 200);
    const char *damage;
    const unit_set units = superblock_uncarve(s, by_pass, &damage);
    EXPECT(units != 0 && damage == NULL);
    for (unsigned u = 0; is_purged && u < UNITS_MAX; u++)
        if ((units >> u & 1) != 0)
            os_purge(superblock_start(s) + u * superblock_unit_bytes(s), superblock_unit_bytes(s));
    if (is_purged)
        superblock_note_purged(s, units);
    allowance_set(1ll << 40);
    const size_t lent = superblock_lend(s);
    EXPECT(lent > 0 && expect_lent(s) == lent);
    EXPECT_EQ((uint64_t)((1ll << 40) - allowance_left), is_purged ? lent * SLICE_BYTES : 0);
    expect_live_untouched(s);
    superblock_give(s);
    allowance_reset();
}

/* ---- squeezing ---- */

/* Free spans of the two arenas, one behind the other: together they hold what neither does. */
static void arenas_are_joined(void)
{
    const size_t each = 40;
    uint32_t dense, large, both, rest[64];
    unsigned count = 0;
    do { /* until two lie side by side */
        EXPECT(count < ARRAY_LEN(rest) && span_take(span_dense, each, 1, &dense));
        rest[count++] = dense;
        EXPECT(count < ARRAY_LEN(rest) && span_take(span_large, each, 1, &large));
        rest[count++] = large;
    } while (large != dense + each && dense != large + each && count < 60);
    if (large != dense + each && dense != large + each) {
        unit_say("no two spans of both arenas lie side by side\n");
    } else {
        span_give(dense, each);
        span_give(large, each);
        count -= 2;
        system_refuses = true;
        EXPECT(!span_squeeze(1 << 16, 1, &both));
        EXPECT(span_squeeze(2 * each, 1, &both));
        system_refuses = false;
        span_give(both, 2 * each);
    }
    while (count > 0)
        span_give(rest[--count], each);
}

/* An aligned span needs no slack where it fits exactly. */
static void alignment_costs_nothing(void)
{
    uint32_t first, again;
    EXPECT(span_squeeze(64, 64, &first));
    EXPECT_EQ((uintptr_t)slice_address(first) % (64 * SLICE_BYTES), 0);
    span_give(first, 64);
    EXPECT(span_squeeze(64, 64, &again));
    EXPECT_EQ((uintptr_t)slice_address(again) % (64 * SLICE_BYTES), 0);
    span_give(again, 64);
}

/* What fits as things lie is found without giving anything back: neither pages nor superblocks. */
static void what_fits_purges_nothing(void)
{
    enum { most = 1 << 14 };
    static char *block[most], *small;
    size_t count = 0;
    small = malloc(20000);
    free(malloc(30000)); /* an empty superblock */
    system_refuses = true;
    while (count < most && (block[count] = malloc(140000)) != NULL)
        memset(block[count++], 1, 140000);
    EXPECT(count > 8 && count < most);
    free(block[--count / 2]);
    block[count / 2] = block[count];
    size_t purged = span_counts().purged_bytes, in_use = span_counts().in_use_bytes;
    char *p = malloc(40000); /* of 63 slices there are three */
    EXPECT(p != NULL);
    EXPECT_EQ(span_counts().purged_bytes, purged);
    EXPECT(span_counts().in_use_bytes > in_use);
    free(p);
    system_refuses = false;
    while (count > 0)
        free(block[--count]);
    free(small);
}

/* ---- without a heap ---- */

static void a_thread_without_a_heap_is_served(void)
{
    static char *block[CLASS_COUNT];
    static struct heap *saved[SLOT_MAX + 1];
    system_refuses = true;
    while (meta_take(4096) != NULL)
        ;
    for (unsigned slot = 0; slot < slot_count; slot++) {
        saved[slot] = heap_of_cid[slot];
        __atomic_store_n(&heap_of_cid[slot], &empty_heap, __ATOMIC_RELEASE);
    }
    rcs_fence();
    EXPECT(heap_here() == NULL);
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        block[c] = malloc(size_class[c].bytes);
        EXPECT_MSG(block[c] != NULL, "class %u is refused where there is no heap", c);
        memset(block[c], (int)c, size_class[c].bytes);
    }
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        EXPECT_EQ(block[c][size_class[c].bytes - 1], (char)c);
        free(block[c]);
    }
    for (unsigned slot = 0; slot < slot_count; slot++)
        __atomic_store_n(&heap_of_cid[slot], saved[slot], __ATOMIC_RELEASE);
    rcs_fence();
    system_refuses = false;
    free(malloc(100));
    expect_heaps_sound();
}

int main(int argc, char **argv)
{
    unit_watchdog(300);
    unit_print_mode();
    struct rng rng = unit_rng();
    unsigned rounds = (unsigned)unit_option(argc, argv, "--rounds", 1);
    short_ones_are_whole();
    for (unsigned round = 0; round < rounds; round++)
        for (unsigned c = 0; c < CLASS_COUNT; c++)
            for (unsigned one_in = 2; size_class[c].slices > 1 && one_in < 1000; one_in *= 4)
                what_is_free_is_lent(&rng, c, one_in);
    what_has_no_pages_counts_when_lent(&rng, true);
    what_has_no_pages_counts_when_lent(&rng, false);
    arenas_are_joined();
    alignment_costs_nothing();
    what_fits_purges_nothing();
    a_thread_without_a_heap_is_served();
    return 0;
}
