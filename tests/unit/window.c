/* SPDX-License-Identifier: MIT
 *
 * The window grows past other people's mappings.  Something is mapped exactly where the next step wants to open; the
 * step must go elsewhere, leave the stranger's bytes alone, never hand them out, and keep looking addresses up rightly
 * on both sides of the hole.
 */
#include "heap/window.h"

#include <malloc.h>
#include <sys/wait.h>

#include "heap/span.h"
#include "inspect.h"
#include "unit.h"

#define OBSTACLES      12
#define OBSTACLE_BYTES ((size_t)4096 * 3)

static char *obstacle[OBSTACLES];

/* First address above the window: window_contains is true below it. */
static uintptr_t window_top(void)
{
    uintptr_t low = hot.window_base, high = low + ((uintptr_t)1 << 42);
    while (low + 1 < high) {
        uintptr_t middle = low + (high - low) / 2;
        if (window_contains((void *)middle))
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

/* Takes spans until the window has grown; they are written to, and given back at the end. */
static void grow(size_t slices)
{
    enum { most = 4096 };
    static uint32_t first[most];
    unsigned n = 0;
    uintptr_t top = window_top();
    while (window_top() == top) {
        EXPECT(n < most);
        EXPECT(span_take(span_dense, slices, 1, &first[n]));
        char *start = slice_address(first[n]), *end = start + (slices << SLICE_SHIFT);
        for (int k = 0; k < OBSTACLES; k++)
            EXPECT_MSG(obstacle[k] == NULL || obstacle[k] + OBSTACLE_BYTES <= start || obstacle[k] >= end,
                       "a span lies over a stranger's mapping");
        for (char *page = start; page < end; page += 4096)
            *page = 1; /* mapped, all of it */
        EXPECT(window_contains(start) && window_contains(end - 1));
        n++;
    }
    while (n > 0)
        span_give(first[--n], slices);
}

static void growth_goes_around_obstacles(struct rng *rng)
{
    EXPECT_EQ(window_top() - hot.window_base, window_opened_bytes()); /* no hole yet */
    size_t opened = window_opened_bytes();
    for (int k = 0; k < OBSTACLES; k++) {
        /* At the very start of the next step, or some pages into it. */
        obstacle[k] = put_obstacle(window_top() + 4096 * (k % 2 == 0 ? 0 : rng_below(rng, 64)));
        grow(8 + rng_below(rng, 40));
        EXPECT(window_opened_bytes() > opened);
        opened = window_opened_bytes();
        EXPECT(window_top() - hot.window_base > opened); /* holes are not counted as opened */
    }
    for (int k = 0; k < OBSTACLES; k++)
        expect_stranger_untouched(obstacle[k]);
}

/* An address in the hole has a descriptor, and is nobody's block. */
static void holes_hold_no_blocks(void)
{
    for (int k = 0; k < OBSTACLES; k++) {
        EXPECT(window_contains(obstacle[k]));
        EXPECT_EQ(block_find(obstacle[k]).kind, block_invalid);
        EXPECT_EQ(descriptor_of(obstacle[k])->kind, slice_unknown);
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

/* In the way of the descriptors there is no way around.  Growth fails cleanly, and what is there goes on working. */
static void a_stranger_among_the_descriptors(void)
{
    pid_t child = fork();
    EXPECT(child >= 0);
    if (child == 0) {
        uintptr_t top = (window_top() - hot.window_base) >> SLICE_SHIFT;
        uintptr_t unit = align_up(top, 1024) << DESCRIPTOR_SHIFT;
        put_obstacle((uintptr_t)hot.descriptors + unit);
        void *kept = malloc(5000);
        EXPECT(kept != NULL);
        uint32_t first;
        unsigned taken = 0;
        while (taken < 100000 && span_take(span_dense, 64, 1, &first))
            taken++;
        EXPECT_MSG(taken < 100000, "the window grew over a stranger's mapping");
        void *block = malloc((size_t)3 << 20); /* a mapping of its own is still possible */
        EXPECT(block != NULL);
        memset(block, 1, (size_t)3 << 20);
        free(block);
        free(kept);
        _exit(0);
    }
    int status;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
}

int main(void)
{
    unit_print_mode();
    unit_watchdog(120);
    struct rng rng = unit_rng();
    growth_goes_around_obstacles(&rng);
    holes_hold_no_blocks();
    blocks_work_on_both_sides(&rng);
    a_stranger_among_the_descriptors();
    return 0;
}
