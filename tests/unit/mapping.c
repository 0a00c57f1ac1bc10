/* SPDX-License-Identifier: MIT
 *
 * The registry of mappings: thousands at once, taken, resized, freed and looked up in random order against a reference
 * table, small ones so that the numbers can be large.  A lookup never finds what is not the start of a block, a freed
 * one is freed once, what is claimed to be zero is, and what is kept for reuse stays within its bound (of that,
 * mapping_cache.c has more).
 */
#include "heap/mapping.h"

#include <sys/mman.h>
#include <sys/resource.h>

#include "heap/allowance.h"
#include "heap/grown.h"
#include "heap/large.h"
#include "heap/region.h"
#include "os/os.h"
#include "unit.h"

#define COUNT 6000

struct entry {
    char *address;
    size_t bytes;
    uint64_t key;
};

static struct entry entry[COUNT];
static size_t live, live_bytes, reused, moved;
static struct large_counts start;

static bool refuse_maps;

/* The linker wraps it. */
void *__real_os_map(size_t size);
void *__wrap_os_map(size_t size);
void *__wrap_os_map(size_t size)
{
    return refuse_maps ? NULL : __real_os_map(size);
}

static unsigned looks_at_what_is_left;

void __wrap_headroom_in_passing(void);
void __wrap_headroom_in_passing(void)
{
    looks_at_what_is_left++;
}

static void stamp(const struct entry *e)
{
    ((uint64_t *)e->address)[0] = e->key;
    ((uint64_t *)(e->address + e->bytes))[-1] = ~e->key;
}

static void expect_stamped(const struct entry *e)
{
    EXPECT(((const uint64_t *)e->address)[0] == e->key && ((const uint64_t *)(e->address + e->bytes))[-1] == ~e->key);
}

static void expect_counts(void)
{
    struct large_counts now = large_counts();
    EXPECT_EQ(now.mapping_blocks - start.mapping_blocks, live);
    EXPECT_EQ(now.mapping_bytes - start.mapping_bytes, live_bytes);
    EXPECT(now.cached_bytes <= MAPPING_CACHE_BYTES);
}

static void take(struct entry *e, struct rng *rng)
{
    size_t size = 1 + rng_below(rng, 40000);
    size_t alignment = rng_below(rng, 4) == 0 ? 1ul << (12 + rng_below(rng, 6)) : 16;
    bool zero;
    e->address = mapping_take(size, alignment, &zero);
    EXPECT(e->address != NULL);
    e->bytes = mapping_bytes(e->address, true);
    EXPECT(e->bytes >= size && e->bytes <= align_up(size, os_page_bytes) * 5 / 4);
    EXPECT_EQ((uintptr_t)e->address % max_size(alignment, os_page_bytes), 0);
    EXPECT(!region_contains(e->address));
    for (size_t i = 0; zero && i < e->bytes; i += 8)
        EXPECT_EQ(*(uint64_t *)(e->address + i), 0);
    reused += !zero;
    e->key = rng_next(rng);
    stamp(e);
    live++;
    live_bytes += e->bytes;
}

static void give(struct entry *e)
{
    expect_stamped(e);
    EXPECT(!mapping_give(e->address + os_page_bytes / 2)); /* not a start */
    EXPECT(mapping_give(e->address));
    EXPECT_EQ(mapping_bytes(e->address, true), 0);
    EXPECT(!mapping_give(e->address));
    live--;
    live_bytes -= e->bytes;
    *e = (struct entry){0};
}

static void resize(struct entry *e, struct rng *rng)
{
    size_t size = 1 + rng_below(rng, 60000), old = e->bytes;
    char *now = mapping_resize(e->address, size);
    EXPECT(now != NULL);
    if (now != e->address) {
        EXPECT_EQ(mapping_bytes(e->address, true), 0);
        moved++;
    }
    e->address = now;
    e->bytes = mapping_bytes(now, true);
    EXPECT_EQ(e->bytes, align_up(size, size > old ? HUGE_PAGE_BYTES : os_page_bytes));
    EXPECT_EQ(*(uint64_t *)now, e->key);
    if (e->bytes >= old)
        EXPECT_EQ(((uint64_t *)(now + old))[-1], ~e->key);
    for (size_t i = old; i < e->bytes; i += i < size ? 512 : 64 * 1024) /* behind that lies room */
        EXPECT_EQ(*(uint64_t *)(now + i), 0);
    live_bytes += e->bytes - old;
    stamp(e);
}

static void lookups_find_starts_only(struct rng *rng)
{
    for (int i = 0; i < 2000; i++) {
        const struct entry *e = &entry[rng_below(rng, COUNT)];
        if (e->address == NULL)
            continue;
        EXPECT_EQ(mapping_bytes(e->address, true), e->bytes);
        EXPECT_EQ(mapping_bytes(e->address + 16, true), 0);
        EXPECT_EQ(mapping_bytes(e->address - 1, true), 0);
    }
    EXPECT_EQ(mapping_bytes(NULL, true), 0);
    EXPECT_EQ(mapping_bytes((void *)1, true), 0); /* the table's mark of a removed entry */
    EXPECT_EQ(mapping_bytes((void *)UINTPTR_MAX, true), 0);
    EXPECT(!mapping_give(NULL) && !mapping_give((void *)1));
    EXPECT(mapping_resize((void *)(uintptr_t)0x7000, 4096) == NULL);
}

static void random_walk(struct rng *rng, uint64_t steps)
{
    for (size_t i = 0; i < COUNT; i++)
        take(&entry[i], rng); /* the table grows several times */
    expect_counts();
    lookups_find_starts_only(rng);
    for (uint64_t step = 0; step < steps; step++) {
        struct entry *e = &entry[rng_below(rng, COUNT)];
        if (e->address == NULL)
            take(e, rng);
        else if (rng_below(rng, 3) == 0)
            resize(e, rng);
        else
            give(e);
        if (step % 1024 == 0)
            expect_counts();
    }
    lookups_find_starts_only(rng);
    for (size_t i = 0; i < COUNT; i++)
        if (entry[i].address != NULL)
            expect_stamped(&entry[i]);
    for (size_t i = 0; i < COUNT; i++)
        if (entry[i].address != NULL) {
            EXPECT(mapping_give(entry[i].address));
            live--;
            live_bytes -= entry[i].bytes;
            entry[i] = (struct entry){0};
        }
    expect_counts();
    unit_say("%zu reused, %zu moved\n", reused, moved);
    EXPECT(reused > 100 && moved > 100);
}

/* What is cut off is given back; but one that grows and is cut again and again keeps it, for as long as it does. */
static void what_swings_is_not_cut(void)
{
    const size_t whole = 96ul << 20, most = 72ul << 20, little = 30ul << 20;
    char *p = malloc(whole);
    EXPECT(p != NULL && mapping_bytes(p, true) == whole);
    for (unsigned i = 0; i < 2; i++) {
        EXPECT((p = realloc(p, most)) != NULL);
        EXPECT_EQ(mapping_bytes(p, true), most);
        EXPECT((p = realloc(p, most - (1ul << 20))) != NULL);
        EXPECT_EQ(mapping_bytes(p, true), most);
        EXPECT((p = realloc(p, whole)) != NULL);
    }
    EXPECT((p = realloc(p, most)) != NULL);
    EXPECT_EQ(mapping_bytes(p, true), whole);
    os_sleep(1100000000);
    EXPECT((p = realloc(p, most)) != NULL);
    EXPECT_EQ(mapping_bytes(p, true), most);
    EXPECT((p = realloc(p, little)) != NULL); /* but for less than half */
    EXPECT_EQ(mapping_bytes(p, true), little);
    free(p);
}

/* In small steps the system is asked once for many; under a limit for what is needed. */
static void what_grows_gets_room(void)
{
    const size_t step = 4 * os_page_bytes, first = 40ul << 20;
    char *p = malloc(first);
    EXPECT(p != NULL && mapping_bytes(p, true) == first);
    EXPECT((p = realloc(p, first + step)) != NULL);
    EXPECT_EQ(mapping_bytes(p, true), first + HUGE_PAGE_BYTES);
    EXPECT_EQ((uintptr_t)realloc(p, first + HUGE_PAGE_BYTES), (uintptr_t)p);

    struct rlimit before, limit;
    EXPECT(getrlimit(RLIMIT_AS, &before) == 0);
    limit = before;
    limit.rlim_cur = unit_status_bytes("VmSize") + HUGE_PAGE_BYTES / 2;
    EXPECT(setrlimit(RLIMIT_AS, &limit) == 0);
    EXPECT((p = realloc(p, first + HUGE_PAGE_BYTES + step)) != NULL);
    EXPECT_EQ(mapping_bytes(p, true), first + HUGE_PAGE_BYTES + step);
    EXPECT(setrlimit(RLIMIT_AS, &before) == 0);
    free(p);
}

/* A mapping that the program has made several of, to the system, for one that must not be in a child. */
static void what_is_several_is_copied(void)
{
    bool zero;
    const size_t bytes = 24ul << 20, before = large_counts().mapping_blocks;
    mapping_trim(0);
    char *p = mapping_take(bytes, 16, &zero);
    EXPECT(p != NULL);
    for (size_t i = 0; i < bytes; i += os_page_bytes)
        p[i] = (char)(i / os_page_bytes);
    EXPECT(madvise(p + bytes / 4, os_page_bytes, MADV_DONTFORK) == 0);
    EXPECT((p = mapping_resize(p, 2 * bytes)) != NULL);
    EXPECT(os_is_one_mapping(p, mapping_bytes(p, true)));
    for (size_t i = 0; i < bytes; i += os_page_bytes)
        EXPECT_EQ(p[i], (char)(i / os_page_bytes));
    EXPECT_EQ(large_counts().mapping_blocks, before + 1);
    EXPECT(mapping_give(p));
}

/* What realloc takes counts as what malloc takes does. */
static void who_grows_looks_at_what_is_left(void)
{
    const size_t span = 1ul << 20, mapping = 40ul << 20;
    for (size_t bytes = span; bytes <= mapping; bytes *= mapping / span) {
        char *p = malloc(bytes);
        EXPECT(p != NULL);
        looks_at_what_is_left = 0;
        allowance_set(0);
        EXPECT((p = realloc(p, bytes + SLICE_BYTES)) != NULL);
        allowance_reset();
        EXPECT(looks_at_what_is_left > 0);
        free(p);
    }
}

/* A block that another lies right behind grows in a small step. */
static char *grow_among_others(char **others, size_t count)
{
    const size_t bytes = 2 * GROWN_BYTES_MIN;
    char *grown = NULL;
    for (size_t i = 0; i < count; i++)
        EXPECT((others[i] = malloc(bytes)) != NULL);
    for (size_t i = 0; i < count * count && grown == NULL; i++)
        if (others[i / count] + bytes == others[i % count]) {
            grown = others[i / count];
            others[i / count] = NULL;
        }
    EXPECT(grown != NULL);
    memset(grown, 5, bytes);
    EXPECT((grown = realloc(grown, bytes + bytes / 8)) != NULL);
    for (size_t i = 0; i < bytes; i++)
        EXPECT_EQ(grown[i], 5);
    return grown;
}

/* Among others a vector that grows in small steps becomes a mapping, and is copied no more; but once one was freed,
 * the next stay where its memory is. */
static void what_grows_among_others_is_mapped(void)
{
    char *others[2][9];
    while (!grown_suits_mapping(GROWN_BYTES_MIN)) /* the walk has freed some */
        continue;
    char *mapped = grow_among_others(others[0], 9);
    EXPECT(mapping_bytes(mapped, true) > 2 * GROWN_BYTES_MIN);
    EXPECT((mapped = realloc(mapped, 6 * GROWN_BYTES_MIN)) != NULL);
    EXPECT(mapping_bytes(mapped, true) >= 6 * GROWN_BYTES_MIN);
    free(mapped);
    char *span = grow_among_others(others[1], 9);
    EXPECT_EQ(mapping_bytes(span, true), 0);
    free(span);
    for (size_t i = 0; i < 18; i++)
        free(others[i / 9][i % 9]);
}

static void sizes_beyond_reason_fail(void)
{
    bool zero;
    EXPECT(mapping_take(SIZE_MAX, 16, &zero) == NULL);
    EXPECT(mapping_take(SIZE_MAX - 4096, (size_t)1 << 30, &zero) == NULL);
    EXPECT(mapping_take((size_t)1 << 60, 16, &zero) == NULL);
    char *p = mapping_take(20000, 16, &zero);
    EXPECT(p != NULL);
    p[0] = 7;
    EXPECT(mapping_resize(p, (size_t)1 << 60) == NULL);
    EXPECT(mapping_resize(p, SIZE_MAX) == NULL);
    EXPECT(p[0] == 7 && mapping_bytes(p, true) == align_up(20000, os_page_bytes));
    EXPECT(mapping_give(p));
}

/* No memory for a larger table: blocks can be moved only as long as there are entries to spare, and a lookup still
 * ends. */
static void a_table_that_cannot_grow(void)
{
    enum { count = 110, turns = 120 };
    char *block[count];
    bool zero;
    size_t moves = 0;
    for (size_t i = 0; i < count; i++) {
        EXPECT((block[i] = mapping_take(4096, 16, &zero)) != NULL);
        block[i][0] = (char)i;
    }
    refuse_maps = true;
    for (size_t turn = 2; turn < turns; turn++)
        for (size_t i = 0; i < count; i++) {
            char *now = mapping_resize(block[i], turn * HUGE_PAGE_BYTES);
            if (now == NULL)
                now = block[i]; /* it may not move any more */
            moves += now != block[i];
            block[i] = now;
            EXPECT(mapping_bytes(now, true) >= 4096 && now[0] == (char)i);
            EXPECT_EQ(mapping_bytes((char *)now + 16, true), 0); /* what is not there is looked for to the end */
        }
    refuse_maps = false;
    unit_say("%zu moves without a new table\n", moves);
    EXPECT(moves > 140);
    for (size_t i = 0; i < count; i++) {
        char *now = mapping_resize(block[i], turns * HUGE_PAGE_BYTES);
        EXPECT(now != NULL && now[0] == (char)i);
        EXPECT(mapping_give(now));
    }
    mapping_trim(0);
}

int main(int argc, char **argv)
{
    unit_print_mode();
    unit_watchdog(120);
    struct rng rng = unit_rng();
    a_table_that_cannot_grow(); /* while the table is small */
    start = large_counts();
    random_walk(&rng, unit_option(argc, argv, "--steps", 60000));
    mapping_trim(0); /* else what it kept serves below */
    what_swings_is_not_cut();
    what_grows_gets_room();
    what_grows_among_others_is_mapped();
    what_is_several_is_copied();
    who_grows_looks_at_what_is_left();
    sizes_beyond_reason_fail();
    return 0;
}
