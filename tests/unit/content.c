/* SPDX-License-Identifier: MIT
 *
 * What slices, and the units of superblocks, are known to hold: each step from one state to the next, that the counts
 * and what calloc relies on follow it, and that what the system refused to take back is never held for zeros.  In debug
 * builds, steps that do not exist stop the program.
 */
#include <signal.h>
#include <sys/wait.h>

#include "heap/arena.h"
#include "heap/purge.h"
#include "heap/stale.h"
#include "inspect.h"
#include "os/os.h"
#include "unit.h"

#define SLICES 5u

static bool refuses;

bool __real_os_purge(void *address, size_t size);
bool __wrap_os_purge(void *address, size_t size);
bool __wrap_os_purge(void *address, size_t size)
{
    return !refuses && __real_os_purge(address, size);
}

bool __real_os_purge_ranges(const struct os_range *ranges, size_t count);
bool __wrap_os_purge_ranges(const struct os_range *ranges, size_t count);
bool __wrap_os_purge_ranges(const struct os_range *ranges, size_t count)
{
    return !refuses && __real_os_purge_ranges(ranges, count);
}

static void purge_everything_now(void)
{
    EXPECT(slow_enter());
    heap_purge(purge_force, NULL);
    slow_leave();
}

/* ---- slices ---- */

static void expect_state(const struct slice *s, enum content content, bool is_aged)
{
    EXPECT_EQ(s->content, content);
    EXPECT_EQ(s->is_aged, is_aged);
}

static void steps_of_a_slice(void)
{
    struct slice s = {0};
    expect_state(&s, content_zero, false);
    slice_prefaulted(&s);
    expect_state(&s, content_prefaulted, false);
    slice_seen_free(&s);
    expect_state(&s, content_prefaulted, true);
    slice_purged(&s);
    expect_state(&s, content_zero, false);
    slice_prefaulted(&s);
    slice_seen_free(&s);
    slice_taken(&s);
    expect_state(&s, content_zero, false);
    s.kind = slice_kept;
    s.was_zero = true;
    slice_given(&s, false);
    expect_state(&s, content_used, false);
    EXPECT(s.kind == slice_unknown && !s.was_zero);
    slice_seen_free(&s);
    expect_state(&s, content_used, true);
    slice_taken(&s);
    expect_state(&s, content_used, false); /* as it was, until it is given */
    slice_given(&s, true);
    expect_state(&s, content_used, true);
    slice_purged(&s);
    expect_state(&s, content_zero, false);
}

static void expect_all(uint32_t first, enum content content, bool is_aged)
{
    for (uint32_t i = 0; i < SLICES; i++)
        expect_state(slice_at(first + i), content, is_aged);
}

static void steps_of_a_span(void)
{
    uint32_t first;
    bool changed;
    purge_everything_now();
    EXPECT(span_take(span_large, SLICES, 1, &first));
    expect_all(first, content_zero, false);
    EXPECT(span_is_zero(first, SLICES));
    size_t dirty = span_dirty_bytes();
    span_give(first, SLICES);
    EXPECT_EQ(span_dirty_bytes(), dirty + SLICES * SLICE_BYTES);
    expect_all(first, content_used, false);
    span_purge(purge_decay, 0, &changed);
    EXPECT(changed);
    expect_all(first, content_used, true);
    refuses = true;
    span_purge(purge_decay, 0, &changed);
    refuses = false;
    expect_all(first, content_used, true);
    EXPECT_EQ(span_dirty_bytes(), dirty + SLICES * SLICE_BYTES);
    span_purge(purge_decay, 0, &changed);
    expect_all(first, content_zero, false);
    EXPECT_EQ(span_dirty_bytes(), dirty);
    EXPECT(span_take(span_large, SLICES, 1, &first));
    span_give_aged(first, SLICES);
    expect_all(first, content_used, true);
}

#ifdef SUTLER_DEBUG
static void stops(void (*step)(struct slice *), struct slice s, const char *what)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        signal(SIGABRT, SIG_DFL);
        step(&s);
        _exit(0);
    }
    EXPECT(waitpid(child, &status, 0) == child);
    EXPECT_MSG(WIFSIGNALED(status), "%s", what);
}

static void give(struct slice *s)
{
    slice_given(s, false);
}

static void quarantine(struct slice *s)
{
    slice_become(s, slice_quarantine);
}

static void put_in_a_bin(struct slice *s)
{
    slice_become(s, slice_free);
}

static void steps_there_are_not(void)
{
    stops(quarantine, (struct slice){.kind = slice_tail}, "a tail in quarantine");
    stops(put_in_a_bin, (struct slice){.kind = slice_superblock}, "a superblock in a bin");
    stops(give, (struct slice){.kind = slice_large}, "a large block given that was not freed");
    stops(give, (struct slice){.kind = slice_quarantine}, "quarantined memory given");
    stops(slice_prefaulted, (struct slice){.content = content_used}, "used pages were prefaulted");
    stops(slice_prefaulted, (struct slice){.kind = slice_free}, "prefaulted in a bin");
    stops(slice_taken, (struct slice){.kind = slice_large}, "taken from a large block");
    stops(give, (struct slice){.kind = slice_free}, "given twice");
    stops(give, (struct slice){.content = content_prefaulted}, "given, but never taken");
    stops(slice_seen_free, (struct slice){.kind = slice_large, .content = content_used}, "free and in use");
    stops(slice_seen_free, (struct slice){.content = content_zero}, "aged without pages");
    stops(slice_purged, (struct slice){.kind = slice_tail, .content = content_used}, "purged while in use");
}
#else
static void steps_there_are_not(void)
{
}
#endif

/* ---- units ---- */

/* Only the units of slices that were used. */
static void a_superblock_remembers_its_slices(unsigned c)
{
    const unsigned slices = size_class[c].slices;
    uint32_t first;
    purge_everything_now();
    EXPECT(slices > 8 && span_take(span_large, slices, 1, &first));
    for (unsigned i = 0; i < slices; i++)
        EXPECT(slice_at(first + i)->content == content_zero);
    slice_at(first + 3)->content = slice_at(first + 4)->content = content_used;
    struct superblock *s = superblock_format(first, c, slices);
    EXPECT(s->dirty == (superblock_units_of_slice(s, 3) | superblock_units_of_slice(s, 4)));
    EXPECT(is_stale(s) && superblock_has_zeros(s));
    size_t unit = superblock_unit_bytes(s);
    for (unsigned i = 0; i < s->blocks; i++) {
        char *block = superblock_block(s, i);
        EXPECT_EQ(superblock_is_zero_block(s, block), (units_touched(s, i) & s->dirty) == 0);
    }
    EXPECT(unit <= SLICE_BYTES);
    test_superblock_drop(s);
}

/* Takes the blocks off the list that touch the units from `from` on: these stay. */
static void hold_from(struct superblock *s, unit_set units)
{
    uint64_t list = 0;
    for (uint64_t at = s->freelist; at != 0;) {
        char *block = freelist_top(at);
        at = next_get(block);
        if ((units_touched(s, superblock_block_number(s, block)) & units) == 0) {
            next_set(block, list);
            list = freelist_pack(block, freelist_count(list) + 1);
        }
    }
    s->freelist = list;
}

/* What was uncarved is dirty until its pages are gone; what stayed is dirty from then on. */
static void uncarved_units_are_dirty_until_purged(unsigned c)
{
    const char *damage;
    struct superblock *s = test_superblock_new(c);
    s->dirty = 0;
    test_carve_all(s);
    EXPECT(s->dirty == 0); /* no part of it belongs to no block */
    hold_from(s, 1ull << 20);
    unit_set units = superblock_uncarve(s, by_pass, &damage);
    EXPECT(damage == NULL && units != 0 && units == s->uncarved);
    EXPECT((s->dirty & units) == units);
    EXPECT(!superblock_has_zeros(s));
    superblock_note_purged(s, units);
    EXPECT((s->dirty & units) == 0);
    EXPECT((s->dirty & 1ull << 20) != 0);
    EXPECT(superblock_has_zeros(s));
    s->has_holes = true; /* these are filled last, by whoever */
    EXPECT(!superblock_has_zeros(s));
    test_superblock_drop(s);
}

/* ---- what the system refuses ---- */

static void expect_zero(const char *block, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        EXPECT_MSG(block[i] == 0, "byte %zu of %zu is 0x%x", i, bytes, block[i] & 0xff);
}

/* As in memory that is locked. */
static void what_is_refused_is_cleared(size_t bytes)
{
    static char *block[256];
    const unsigned count = size_class[size_class_of(bytes)].blocks * 3u;
    EXPECT(count <= ARRAY_LEN(block));
    for (unsigned i = 0; i < count; i++)
        memset(block[i] = malloc(bytes), 0xa5, bytes);
    refuses = true;
    for (unsigned i = 0; i < count; i++)
        if (i % 16 != 0)
            free(block[i]);
    purge_everything_now();
    purge_everything_now();
    for (unsigned i = 0; i < count; i++)
        if (i % 16 != 0)
            expect_zero(block[i] = calloc(1, bytes), bytes);
    refuses = false;
    for (unsigned i = 0; i < count; i++)
        free(block[i]);
    purge_everything_now();
    expect_heaps_sound();
}

int main(void)
{
    unit_watchdog(120);
    unit_print_mode();
    free(malloc(1));
    steps_of_a_slice();
    steps_of_a_span();
    steps_there_are_not();
    a_superblock_remembers_its_slices(size_class_of(24ul << 10));
    uncarved_units_are_dirty_until_purged(size_class_of(24ul << 10));
    uncarved_units_are_dirty_until_purged(size_class_of(1000));
    what_is_refused_is_cleared(24ul << 10);
    what_is_refused_is_cleared(112ul << 10);
    return 0;
}
