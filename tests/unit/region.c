/* SPDX-License-Identifier: MIT
 *
 * The region grows past other people's mappings.  Something is mapped exactly where the next step wants to open; the
 * step must go elsewhere, leave the stranger's bytes alone, never hand them out, and keep looking addresses up rightly
 * on both sides of the hole.  The same where the stranger lies among the descriptors of slices to come.
 */
#include "heap/region.h"

#include <malloc.h>

#include "heap/large.h"
#include "heap/mapping.h"
#include "heap/span.h"
#include "inspect.h"
#include "unit.h"

#define OBSTACLES      12
#define OBSTACLE_BYTES (os_page_bytes * 3)

static char *obstacle[OBSTACLES];

/* Where the next os_map is to go (the linker wraps it); NULL: where the system likes. */
static char *map_there;

void *__real_os_map(size_t size);
void *__wrap_os_map(size_t size);
void *__wrap_os_map(size_t size)
{
    if (map_there == NULL || size > OBSTACLE_BYTES * 2)
        return __real_os_map(size);
    char *at = map_there;
    map_there = NULL;
    void *mapped = mmap(at, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    return mapped == MAP_FAILED ? NULL : mapped;
}

/* First address above the region: region_contains is true below it. */
static uintptr_t region_top(void)
{
    uintptr_t low = hot.region_base, high = low + ((uintptr_t)1 << 42);
    while (low + 1 < high) {
        uintptr_t middle = low + (high - low) / 2;
        if (region_contains((void *)middle))
            low = middle;
        else
            high = middle;
    }
    return low + 1;
}

static void expect_stranger_untouched(const char *at)
{
    for (size_t i = 0; i < OBSTACLE_BYTES; i++)
        EXPECT_EQ(at[i], (char)('a' + i % 26));
}

static char *put_obstacle(uintptr_t address)
{
    void *at = mmap((void *)address, OBSTACLE_BYTES, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    EXPECT_MSG(at == (void *)address, "cannot map the obstacle (errno %d)", errno);
    for (size_t i = 0; i < OBSTACLE_BYTES; i++)
        ((char *)at)[i] = (char)('a' + i % 26);
    return at;
}

/* Takes spans until the region has grown; they are written to, and given back at the end. */
static void grow(size_t slices)
{
    enum { most = 4096 };
    static uint32_t first[most];
    unsigned n = 0;
    uintptr_t top = region_top();
    while (region_top() == top) {
        EXPECT(n < most);
        EXPECT(span_take(span_dense, slices, 1, &first[n]));
        char *start = slice_address(first[n]), *end = start + (slices << SLICE_SHIFT);
        for (int k = 0; k < OBSTACLES; k++)
            EXPECT_MSG(obstacle[k] == NULL || obstacle[k] + OBSTACLE_BYTES <= start || obstacle[k] >= end,
                       "a span lies over a stranger's mapping");
        for (char *page = start; page < end; page += os_page_bytes)
            *page = 1; /* mapped, all of it */
        EXPECT(region_contains(start) && region_contains(end - 1));
        n++;
    }
    while (n > 0)
        span_give(first[--n], slices);
}

static void growth_goes_around_obstacles(struct rng *rng)
{
    size_t left_out = 0; /* at the start; there is no other hole yet */
    while (slice_at((uint32_t)left_out)->kind == slice_hole)
        left_out++;
    EXPECT_EQ(region_top() - hot.region_base, region_opened_bytes() + (left_out << SLICE_SHIFT));
    size_t opened = region_opened_bytes();
    for (int k = 0; k < OBSTACLES; k++) {
        /* At the very start of the next step, or some pages into it. */
        obstacle[k] = put_obstacle(region_top() + os_page_bytes * (k % 2 == 0 ? 0 : rng_below(rng, 4)));
        grow(8 + rng_below(rng, 40));
        EXPECT(region_opened_bytes() > opened);
        opened = region_opened_bytes();
        EXPECT(region_top() - hot.region_base > opened); /* holes are not counted as opened */
    }
    for (int k = 0; k < OBSTACLES; k++)
        expect_stranger_untouched(obstacle[k]);
}

/* An address in the hole has a descriptor, and is nobody's block. */
static void holes_hold_no_blocks(void)
{
    for (int k = 0; k < OBSTACLES; k++) {
        EXPECT(region_contains(obstacle[k]));
        EXPECT_EQ(block_find(obstacle[k]).kind, block_invalid);
        EXPECT_EQ(slice_at(slice_of(obstacle[k]))->kind, slice_hole);
    }
}

static void blocks_work_on_both_sides(struct rng *rng)
{
    enum { count = 3000 };
    char **block = unit_map(count * sizeof *block);
    size_t *size = unit_map(count * sizeof *size);
    for (size_t i = 0; i < count; i++) {
        size[i] = 1 + rng_below(rng, 200000);
        block[i] = malloc(size[i]);
        EXPECT(block[i] != NULL);
        memset(block[i], (int)i, size[i]);
    }
    for (size_t i = 0; i < count; i++) {
        EXPECT(malloc_usable_size(block[i]) >= size[i]);
        EXPECT(block[i][0] == (char)i && block[i][size[i] - 1] == (char)i);
        free(block[i]);
    }
    for (int k = 0; k < OBSTACLES; k++)
        expect_stranger_untouched(obstacle[k]);
    expect_heaps_sound();
}

/* Above a gap nobody else's memory is looked at: a wild pointer into it is refused, not followed. */
static void expect_gap(uintptr_t first, size_t slices)
{
    for (size_t i = 0; i < slices; i += slices / 16) {
        char *inside = (char *)first + (i << SLICE_SHIFT);
        EXPECT(!region_contains(inside));
        EXPECT_EQ(block_find(inside).kind, block_invalid);
    }
}

/* In the way of the descriptors: the slices they would describe are left out, and growth goes on above. */
static void strangers_among_the_descriptors(void)
{
    enum { unit_slices = SLICE_BYTES >> DESCRIPTOR_SHIFT };
    /* one is ahead */
    size_t top = align_up((region_top() - hot.region_base) >> SLICE_SHIFT, unit_slices) + unit_slices;
    char *stranger = put_obstacle((uintptr_t)hot.descriptors + (top << DESCRIPTOR_SHIFT));
    put_obstacle((uintptr_t)hot.descriptors + ((top + unit_slices) << DESCRIPTOR_SHIFT)); /* two in a row */
    put_obstacle((uintptr_t)hot.descriptors + ((top + 4 * unit_slices) << DESCRIPTOR_SHIFT));    /* and one apart */
    uintptr_t gap = hot.region_base + (top << SLICE_SHIFT), apart = gap + ((uintptr_t)4 * unit_slices << SLICE_SHIFT);
    static uint32_t first[1000];
    size_t n = 0;
    bool above = false;
    for (; !above; n++) {
        EXPECT_MSG(n < ARRAY_LEN(first) && span_take(span_large, 40, 1, &first[n]),
                   "growth ended at a stranger's mapping");
        char *start = slice_address(first[n]), *end = start + (40ul << SLICE_SHIFT);
        EXPECT((uintptr_t)end <= gap || (uintptr_t)start >= gap + (2ul * unit_slices << SLICE_SHIFT));
        EXPECT((uintptr_t)end <= apart || (uintptr_t)start >= apart + ((uintptr_t)unit_slices << SLICE_SHIFT));
        EXPECT(region_contains(start) && region_contains(end - 1));
        *start = end[-1] = 1;
        above = above || (uintptr_t)start > apart;
    }
    expect_gap(gap, 2 * unit_slices);
    expect_gap(apart, unit_slices);
    expect_stranger_untouched(stranger);
    while (n > 0)
        span_give(first[--n], 40);
}

/* The system may put a mapping of its own where the region left a hole. */
static void a_mapping_in_a_hole(void)
{
    EXPECT_EQ(munmap(obstacle[3], OBSTACLE_BYTES), 0);
    map_there = obstacle[3];
    bool zero;
    char *p = mapping_take(OBSTACLE_BYTES, 16, &zero);
    EXPECT(p == obstacle[3] && region_contains(p));
    EXPECT_EQ(block_find(p).kind, block_mapping);
    EXPECT_EQ(malloc_usable_size(p), OBSTACLE_BYTES);
    memset(p, 5, OBSTACLE_BYTES);
    char *q = realloc(p, (size_t)1 << 20);
    EXPECT(q != NULL && q[0] == 5 && q[OBSTACLE_BYTES - 1] == 5);
    free(q);
    mapping_trim(0);
    map_there = obstacle[3];
    p = mapping_take(OBSTACLE_BYTES * 2, 16, &zero);
    EXPECT(p == obstacle[3]);
    large_give_later(p);
    free(malloc((size_t)1 << 20)); /* which frees what waits */
    EXPECT_EQ(mapping_bytes(p, true), 0);
    EXPECT_EQ(block_find(p).kind, block_invalid);
    mapping_trim(0);
    obstacle[3] = put_obstacle((uintptr_t)obstacle[3]);
}

/* Every opened slice's descriptor is the process's own memory before anybody reads it. */
static void descriptors_are_there(void)
{
    uint32_t first, last;
    EXPECT(span_take(span_dense, 3000, 1, &first));
    for (size_t opened = region_opened_bytes(); region_opened_bytes() == opened;)
        EXPECT(span_take(span_dense, 1, 1, &last)); /* in the end from a step of which no more is used yet */
    for (uint32_t slice = region_slice_from(0); slice != SLICE_END; slice = region_slice_from(slice + 1)) {
        unsigned char there = 0;
        void *page = (void *)align_down((uintptr_t)superblock_at_slice(slice), os_page_bytes);
        EXPECT(os_find_resident(page, os_page_bytes, &there) && there != 0);
    }
    span_give(first, 3000);
}

/* A processor takes a load at the offset in a page that it has just stored to for a load of that: the first blocks of
 * the first superblocks, which small programs work with, and their descriptors are half a page apart. */
static void first_blocks_and_their_descriptors_do_not_collide(void)
{
    char *p = malloc(64);
    const size_t block = (uintptr_t)p % OS_PAGE_BYTES_MIN,
                 descriptor = (uintptr_t)slice_at(slice_of(p)) % OS_PAGE_BYTES_MIN;
    EXPECT(p != NULL && region_contains(p));
    EXPECT_MSG(block < 1024 && descriptor >= 2048, "the block is at %zu of a page, its descriptor at %zu", block,
               descriptor);
    free(p);
}

#if defined(__x86_64__)
/* Sanitizers have shadow at the other addresses, and end programs that have something there (region.c). */
static void lies_where_sanitizers_leave_room(void)
{
    const uintptr_t start = 0x550000000000, programs = 0x555555554000;
    EXPECT((uintptr_t)region_below() >= start);
    EXPECT((uintptr_t)region_below() + REGION_BELOW_BYTES <= (uintptr_t)hot.descriptors);
    EXPECT(hot.region_base % (OUTBOX_CHAINS * SLICE_BYTES) == 0);
    EXPECT_MSG(hot.region_base + (64ul << 30) <= programs, "a heap of 64 GiB does not fit below programs");
}
#endif

int main(void)
{
    unit_print_mode();
    unit_watchdog(120);
    struct rng rng = unit_rng();
#if defined(__x86_64__)
    lies_where_sanitizers_leave_room();
#endif
    first_blocks_and_their_descriptors_do_not_collide();
    descriptors_are_there();
    growth_goes_around_obstacles(&rng);
    holes_hold_no_blocks();
    blocks_work_on_both_sides(&rng);
    a_mapping_in_a_hole();
    strangers_among_the_descriptors();
    blocks_work_on_both_sides(&rng);
    return 0;
}
