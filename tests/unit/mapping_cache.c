/* SPDX-License-Identifier: MIT
 *
 * Freed mappings that are kept: within their bound, for whom they serve, what they become together, who unmaps them and
 * when, and that no child has what is to go.
 */
#include "heap/mapping.h"

#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>

#include "heap/ample.h"
#include "heap/demand.h"
#include "heap/large.h"
#include "heap/mapping_table.h"
#include "heap/pass.h"
#include "heap/purge.h"
#include "os/os.h"
#include "unit.h"

static void what_is_kept_is_bounded(void)
{
    mapping_trim(0);
    size_t before = unit_status_bytes("VmSize");
    bool zero;
    static void *block[64];
    for (size_t i = 0; i < ARRAY_LEN(block); i++)
        EXPECT((block[i] = mapping_take(MAPPING_BYTES_MIN + i * 4096, 16, &zero)) != NULL);
    for (size_t i = 0; i < ARRAY_LEN(block); i++) {
        EXPECT(mapping_give(block[i]));
        EXPECT(large_counts().cached_bytes <= MAPPING_CACHE_BYTES);
    }
    EXPECT(large_counts().cached_bytes > 0);
    EXPECT(unit_status_bytes("VmSize") - before <= MAPPING_CACHE_BYTES + (1 << 20)); /* the others are really gone */
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
static _Atomic bool others_come, other_was_in, other_is_done;

void __real_os_give_back(void *address, size_t size);
void __wrap_os_give_back(void *address, size_t size);
void __wrap_os_give_back(void *address, size_t size)
{
    __real_os_give_back(address, size);
    unlocked += !lock_is_mine(&mapping_lock);
    if (!others_come)
        return;
    if (pieces++ == 0)
        while (!lock_is_contended(&pass_lock))
            sched_yield();
}

/* The moment in which the other one wakes up is as long as it takes, however busy the machine is. */
void __real_os_sleep(uint64_t ns);
void __wrap_os_sleep(uint64_t ns);
void __wrap_os_sleep(uint64_t ns)
{
    do
        __real_os_sleep(ns);
    while (others_come && !other_is_done);
}

static void *come_in(void *unused)
{
    while (pieces == 0)
        sched_yield();
    pass_begin();
    other_was_in = large_counts().cached_bytes > 0;
    pass_end();
    other_is_done = true;
    return unused;
}

/* The thread is made first: to make one is a slow path, which may find memory ample, so that what is freed is kept. */
static void unmapping_lets_others_in(void)
{
    bool zero;
    pthread_t thread;
    EXPECT_EQ(pthread_create(&thread, NULL, come_in, NULL), 0);
    atomic_store(&unmap_is_async, true);
    void *p = mapping_take((size_t)400 << 20, 16, &zero);
    EXPECT(p != NULL && mapping_give(p));
    others_come = true;
    pass_begin();
    EXPECT_EQ(mapping_unmap_deferred(SIZE_MAX), (size_t)400 << 20);
    pass_end();
    others_come = false;
    EXPECT_EQ(pthread_join(thread, NULL), 0);
    EXPECT_EQ(large_counts().cached_bytes, 0);
    EXPECT(other_was_in);
    atomic_store(&unmap_is_async, false);
}

/* A kept mapping serves for less, and keeps the rest, or for more, up to twice its length.  Its pages are given up
 * until they are written to again: the system may have taken any of them meanwhile. */
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
        EXPECT(rest[i] == 0 || (rest[i] == 3 && i < whole - part));
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

int main(void)
{
    unit_print_mode();
    unit_watchdog(120);
    what_is_kept_is_bounded();
    what_leaves_waits_for_help();
    what_leaves_is_no_childs(false);
    what_leaves_is_no_childs(true);
    unmapping_lets_others_in();
    what_is_kept_is_cut_and_lengthened();
    what_was_cut_in_two_is_one_again();
    what_is_several_is_not_lengthened();
    what_is_kept_behind_a_block_is_taken();
    return 0;
}
