/* SPDX-License-Identifier: MIT
 *
 * The registry of mappings: thousands at once, taken, resized, freed and looked up in random order against a reference
 * table, small ones so that the numbers can be large.  A lookup never finds what is not the start of a block, a freed
 * one is freed once, what is claimed to be zero is, and what is kept for reuse stays within its bound.
 */
#include "heap/mapping.h"

#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "heap/ample.h"
#include "heap/demand.h"
#include "heap/grown.h"
#include "heap/large.h"
#include "heap/mapping_table.h"
#include "heap/pass.h"
#include "heap/purge.h"
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

static size_t mapped_bytes(void)
{
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    EXPECT(file != NULL && fscanf(file, "%lu", &pages) == 1);
    fclose(file);
    return pages * os_page_bytes;
}

static void what_is_kept_is_bounded(void)
{
    mapping_trim(0);
    size_t before = mapped_bytes();
    bool zero;
    static void *block[64];
    for (size_t i = 0; i < ARRAY_LEN(block); i++)
        EXPECT((block[i] = mapping_take(MAPPING_BYTES_MIN + i * 4096, 16, &zero)) != NULL);
    for (size_t i = 0; i < ARRAY_LEN(block); i++) {
        EXPECT(mapping_give(block[i]));
        EXPECT(large_counts().cached_bytes <= MAPPING_CACHE_BYTES);
    }
    EXPECT(large_counts().cached_bytes > 0);
    EXPECT(mapped_bytes() - before <= MAPPING_CACHE_BYTES + (1 << 20)); /* the others are really gone */
    size_t cached = large_counts().cached_bytes;
    EXPECT_EQ(mapping_trim(0), cached);
    EXPECT_EQ(large_counts().cached_bytes, 0);
    EXPECT_EQ(mapping_trim(0), 0);

    /* One larger than the bound is never kept; a small request does not get all of a large one that was. */
    void *p = mapping_take(MAPPING_CACHE_BYTES + 4096, 16, &zero);
    EXPECT(p != NULL && mapping_give(p));
    EXPECT_EQ(large_counts().cached_bytes, 0);
    p = mapping_take((size_t)40 << 20, 16, &zero);
    EXPECT(p != NULL && mapping_give(p));
    void *q = mapping_take((size_t)17 << 20, 16, &zero);
    EXPECT(q != NULL && mapping_bytes(q, true) == (size_t)18 << 20);
    EXPECT(mapping_give(q));
    mapping_trim(0);
}

/* With somebody to unmap it, a large mapping waits for that, within a bound, and may be had again meanwhile. */
static void what_leaves_waits_for_help(void)
{
    const size_t large = (size_t)200 << 20;
    bool zero;
    atomic_store(&unmap_is_async, true);
    atomic_store(&heap_demand, demand_none);
    void *p = mapping_take(large, 16, &zero);
    EXPECT(p != NULL && mapping_give(p));
    EXPECT_EQ(large_counts().cached_bytes, large);
    EXPECT_EQ(mapping_bytes(p, true), 0);
    EXPECT_EQ(atomic_load(&heap_demand), demand_raised);
    EXPECT(mapping_take(large, 16, &zero) == p && !zero);
    EXPECT(mapping_give(p));
    void *more[8];
    for (int i = 0; i < 8; i++)
        EXPECT((more[i] = mapping_take(large - (size_t)i * 4096, 16, &zero)) != NULL);
    for (int i = 0; i < 8; i++) {
        EXPECT(mapping_give(more[i]));
        EXPECT(large_counts().cached_bytes <= MAPPING_DEFERRED_BYTES);
    }
    EXPECT(large_counts().cached_bytes > MAPPING_DEFERRED_BYTES - large);
    size_t kept = large_counts().cached_bytes;
    EXPECT_EQ(mapping_unmap_deferred(SIZE_MAX), kept);
    EXPECT_EQ(large_counts().cached_bytes, 0);
    p = mapping_take((size_t)20 << 20, 16, &zero);
    EXPECT(p != NULL && mapping_give(p));
    EXPECT_EQ(mapping_unmap_deferred(SIZE_MAX), 0); /* that one is kept */
    atomic_store(&unmap_is_async, false);
    mapping_trim(0);
}

static bool is_mapped(void *p)
{
    unsigned char there;
    return mincore(p, os_page_bytes, &there) == 0;
}

static void in_child_of(pid_t (*make)(void), void (*body)(char *p), char *p)
{
    pid_t child = make();
    EXPECT(child >= 0);
    if (child == 0) {
        free(malloc((size_t)3 << 20)); /* a slow path */
        body(p);
        _exit(0);
    }
    int status;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
}

static void has_it_not(char *p)
{
    EXPECT(!is_mapped(p));
    EXPECT_EQ(large_counts().cached_bytes, 0);
    bool zero;
    char *q = mapping_take((size_t)200 << 20, 16, &zero);
    EXPECT(q != NULL && zero);
    q[0] = 1;
}

static void has_a_copy(char *p)
{
    EXPECT(mapping_bytes(p, true) == (size_t)200 << 20 && p[0] == 7);
    p[0] = 8;
}

/* A child would copy the page tables of what is deferred, and have it all to unmap; or hold what is kept where memory
 * is ample. */
static void what_leaves_is_no_childs(bool ample)
{
    pid_t (*const make[])(void) = {fork, _Fork};
    bool zero;
    atomic_store(&unmap_is_async, true);
    ample_allow(ample ? (size_t)1 << 30 : 0, ample ? UINT64_MAX : 0, SIZE_MAX);
    for (size_t i = 0; i < ARRAY_LEN(make); i++) {
        char *p = mapping_take((size_t)200 << 20, 16, &zero);
        EXPECT(p != NULL);
        p[0] = 1;
        EXPECT(mapping_give(p) && is_mapped(p));
        in_child_of(make[i], has_it_not, p);
        EXPECT(!ample || mapping_unmap_deferred(SIZE_MAX) == 0); /* but the parent keeps it */
        EXPECT(mapping_take((size_t)200 << 20, 16, &zero) == p && !zero);
        p[0] = 7;
        in_child_of(make[i], has_a_copy, p);
        EXPECT(p[0] == 7 && mapping_give(p));
        mapping_trim(0);
    }
    ample_allow(0, 0, 0);
    atomic_store(&unmap_is_async, false);
}

/* ---- while much is unmapped, others get in ---- */

static _Atomic unsigned pieces, unlocked;
static _Atomic bool others_come, other_was_in;

void __real_os_unmap(void *address, size_t size);
void __wrap_os_unmap(void *address, size_t size);
void __wrap_os_unmap(void *address, size_t size)
{
    __real_os_unmap(address, size);
    unlocked += !lock_is_mine(&mapping_lock);
    if (!others_come)
        return;
    if (pieces++ == 0)
        while (!lock_is_contended(&pass_lock))
            sched_yield();
}

static void *come_in(void *unused)
{
    while (pieces == 0)
        sched_yield();
    pass_begin();
    other_was_in = large_counts().cached_bytes > 0;
    pass_end();
    return unused;
}

static bool unmapping_lets_another_in(void)
{
    bool zero;
    pieces = 0;
    void *p = mapping_take((size_t)400 << 20, 16, &zero);
    EXPECT(p != NULL && mapping_give(p));
    pthread_t thread;
    EXPECT_EQ(pthread_create(&thread, NULL, come_in, NULL), 0);
    others_come = true;
    pass_begin();
    EXPECT_EQ(mapping_unmap_deferred(SIZE_MAX), (size_t)400 << 20);
    pass_end();
    others_come = false;
    EXPECT_EQ(pthread_join(thread, NULL), 0);
    EXPECT_EQ(large_counts().cached_bytes, 0);
    return other_was_in;
}

/* Each piece gives it a moment to wake up in; on a busy machine all of them may be too short. */
static void unmapping_lets_others_in(void)
{
    atomic_store(&unmap_is_async, true);
    for (int tries = 1; !unmapping_lets_another_in(); tries++)
        EXPECT(tries < 50);
    atomic_store(&unmap_is_async, false);
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
    limit.rlim_cur = mapped_bytes() + HUGE_PAGE_BYTES / 2;
    EXPECT(setrlimit(RLIMIT_AS, &limit) == 0);
    EXPECT((p = realloc(p, first + HUGE_PAGE_BYTES + step)) != NULL);
    EXPECT_EQ(mapping_bytes(p, true), first + HUGE_PAGE_BYTES + step);
    EXPECT(setrlimit(RLIMIT_AS, &before) == 0);
    free(p);
}

/* A kept mapping serves for less, and keeps the rest, or for more, up to twice its length. */
static void what_is_kept_is_cut_and_lengthened(void)
{
    const size_t whole = 60ul << 20, part = 20ul << 20, more = 70ul << 20;
    bool zero;
    mapping_trim(0);
    char *p = mapping_take(whole, 16, &zero), *q;
    EXPECT(p != NULL && zero);
    memset(p, 3, whole);
    EXPECT(mapping_give(p));
    EXPECT((q = mapping_take(part, 16, &zero)) == p && !zero);
    EXPECT_EQ(mapping_bytes(q, true), part);
    EXPECT_EQ(large_counts().cached_bytes, whole - part);
    char *rest = mapping_take(more, 16, &zero);
    EXPECT(rest != NULL && !zero && mapping_bytes(rest, true) == more);
    EXPECT_EQ(large_counts().cached_bytes, 0);
    for (size_t i = 0; i < more; i += os_page_bytes)
        EXPECT(rest[i] == (i < whole - part ? 3 : 0));
    EXPECT(mapping_give(q));
    EXPECT((q = mapping_take(2 * part + HUGE_PAGE_BYTES, 16, &zero)) != NULL && zero); /* that is too much more */
    EXPECT(mapping_give(q) && mapping_give(rest));
    mapping_trim(0);
}

static char *take_filled(size_t bytes)
{
    bool zero;
    char *p = mapping_take(bytes, 16, &zero);
    EXPECT(p != NULL);
    memset(p, 3, bytes);
    return p;
}

/* A part that comes back is one with the rest again; but not if that was left alone since the clock came by. */
static void what_was_cut_in_two_is_one_again(void)
{
    const size_t whole = 120ul << 20, part = 80ul << 20;
    bool zero, changed = false;
    mapping_trim(0);
    atomic_store(&unmap_is_async, true);
    ample_allow((size_t)1 << 30, UINT64_MAX, SIZE_MAX);
    char *p = take_filled(whole), *q;
    EXPECT(mapping_give(p));
    EXPECT(mapping_take(part, 16, &zero) == p && mapping_give(p));
    EXPECT(mapping_take(whole, 16, &zero) == p && !zero && mapping_bytes(p, true) == whole && p[whole - 1] == 3);
    EXPECT(mapping_give(p));
    EXPECT(mapping_take(part, 16, &zero) == p);
    mapping_age(&changed);
    EXPECT(changed && mapping_give(p));
    EXPECT((q = mapping_take(whole, 16, &zero)) != NULL && !zero); /* the part, made longer */
    EXPECT_EQ(large_counts().cached_bytes, whole - part);
    EXPECT(mapping_give(q));
    mapping_trim(0);
}

/* What is several mappings to the system makes way for a longer one; and as a block it grows all the same. */
static void what_is_several_is_not_lengthened(void)
{
    const size_t whole = 120ul << 20, part = 80ul << 20, more = 140ul << 20;
    bool zero;
    char *p = take_filled(whole), *q;
    EXPECT(mapping_give(p) && mapping_take(part, 16, &zero) == p);
    EXPECT(madvise(p, part, MADV_DONTDUMP) == 0);
    EXPECT(mapping_give(p) && mapping_take(whole, 16, &zero) == p);
    EXPECT((q = mapping_resize(p, more)) != NULL && q != p && q[whole - 1] == 3);
    EXPECT_EQ(mapping_bytes(p, true), 0);
    EXPECT_EQ(large_counts().cached_bytes, whole);
    p = mapping_take(more, 16, &zero);
    EXPECT(p != NULL && zero);
    EXPECT_EQ(mapping_unmap_deferred(SIZE_MAX), whole);
    EXPECT(mapping_give(p) && mapping_give(q));
    mapping_trim(0);
}

/* A block grows into what is kept right behind it.  What is cut off one is unmapped, in pieces, with no lock held. */
static void what_is_kept_behind_a_block_is_taken(void)
{
    const size_t whole = 100ul << 20, part = 60ul << 20;
    bool zero;
    char *p = take_filled(whole);
    EXPECT(mapping_give(p) && mapping_take(part, 16, &zero) == p);
    EXPECT_EQ(large_counts().cached_bytes, whole - part);
    EXPECT(mapping_resize(p, whole) == p && mapping_bytes(p, true) == whole && large_counts().cached_bytes == 0);
    for (size_t i = 0; i < whole; i += os_page_bytes)
        EXPECT_EQ(p[i], 3);
    const unsigned before = unlocked;
    EXPECT(mapping_resize(p, part) == p && unlocked == before + (whole - part) / (8u << 20));
    EXPECT(mapping_bytes(p, true) == part && large_counts().cached_bytes == 0);
    EXPECT(mapping_give(p));
    mapping_trim(0);
    ample_allow(0, 0, 0);
    atomic_store(&unmap_is_async, false);
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
    what_is_kept_is_bounded();
    what_leaves_waits_for_help();
    what_leaves_is_no_childs(false);
    what_leaves_is_no_childs(true);
    unmapping_lets_others_in();
    what_swings_is_not_cut();
    what_is_kept_is_cut_and_lengthened();
    what_grows_gets_room();
    what_was_cut_in_two_is_one_again();
    what_is_several_is_not_lengthened();
    what_is_kept_behind_a_block_is_taken();
    what_grows_among_others_is_mapped();
    sizes_beyond_reason_fail();
    return 0;
}
