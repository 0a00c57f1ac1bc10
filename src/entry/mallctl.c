/* SPDX-License-Identifier: MIT
 *
 * jemalloc's control (jemalloc(3), "MALLCTL NAMESPACE"), as far as programs ask it about their memory.  A program linked with
 * jemalloc and run under this library (Debian's redis) would otherwise be answered by jemalloc, whose heap is empty: a
 * fragmentation of 0 or infinity, which some act upon.  What redis asks for is answered for our heap; other names are
 * unknown (ENOENT), so that who looks for jemalloc itself (thread.allocatedp, opt.*, prof.*) does not find it.
 *
 * Figures are those of the last time "epoch" was written, as there.  Our size classes are its bins, with slabs of one
 * region, since a superblock is carved bit by bit: what redis computes from them is the bytes in free blocks.  Arenas and
 * caches are names only (docs/decisions/0013-no-arenas.md): one with functions of its own for getting memory is refused.
 *
 * Only in the shared library: a static program is linked with one allocator.
 */
#include <errno.h>
#include <string.h>

#include "core/core.h"
#include "manager/snapshot.h"
#include "options/options.h"
#include "os/line.h"
#include "os/os.h"
#include "sutler/sutler.h"

#define ALL_ARENAS 4096u

int mallctl(const char *name, void *old, size_t *old_length, void *new, size_t new_length);
int mallctlnametomib(const char *name, size_t *mib, size_t *length);
int mallctlbymib(const size_t *mib, size_t mib_length, void *old, size_t *old_length, void *new, size_t new_length);
void malloc_stats_print(void (*write)(void *, const char *), void *opaque, const char *options);

/* ---- figures ---- */

static struct lock figures_lock = LOCK_FREE(rank_figures);
static uint64_t epoch;
static struct sutler_stats stats;
static struct snapshot_class class_stats[CLASS_COUNT];
static size_t resident;
static _Atomic unsigned arenas = 1, caches;

static size_t allocated_bytes(const unsigned *n)
{
    (void)n;
    return stats.live_bytes;
}

static size_t active_bytes(const unsigned *n)
{
    (void)n;
    return stats.live_bytes + stats.free_bytes;
}

static size_t resident_bytes(const unsigned *n)
{
    return max_size(active_bytes(n), min_size(resident, active_bytes(n) + stats.dirty_bytes + stats.reserve_bytes));
}

static size_t mapped_bytes(const unsigned *n)
{
    (void)n;
    return stats.mapped_bytes;
}

static size_t retained_bytes(const unsigned *n)
{
    size_t kept = resident_bytes(n);
    return stats.mapped_bytes - min_size(stats.mapped_bytes, kept);
}

static size_t metadata_bytes(const unsigned *n)
{
    (void)n;
    return stats.mapped_bytes >> (SLICE_SHIFT - DESCRIPTOR_SHIFT);
}

static size_t none(const unsigned *n)
{
    (void)n;
    return 0;
}

/* All blocks are arena 0's. */
static bool is_ours(const unsigned *n)
{
    return n[0] == 0 || n[0] == ALL_ARENAS;
}

static size_t active_pages(const unsigned *n)
{
    return is_ours(n) ? active_bytes(n) / os_page_bytes : 0;
}

static size_t dirty_pages(const unsigned *n)
{
    return is_ours(n) ? stats.dirty_bytes / os_page_bytes : 0;
}

static size_t small_bytes(const unsigned *n)
{
    return is_ours(n) ? stats.live_bytes - min_size(stats.live_bytes, stats.large_bytes) : 0;
}

static size_t large_bytes(const unsigned *n)
{
    return is_ours(n) ? stats.large_bytes : 0;
}

static size_t bin_live(const unsigned *n)
{
    return is_ours(n) ? class_stats[n[1]].live : 0;
}

static size_t bin_carved(const unsigned *n)
{
    return is_ours(n) ? class_stats[n[1]].live + class_stats[n[1]].free : 0;
}

static size_t bin_bytes(const unsigned *n)
{
    return size_class[n[0]].bytes;
}

static size_t one(const unsigned *n)
{
    (void)n;
    return 1;
}

static size_t bin_count(const unsigned *n)
{
    (void)n;
    return CLASS_COUNT;
}

static size_t arena_count(const unsigned *n)
{
    (void)n;
    return arenas;
}

static size_t page_bytes(const unsigned *n)
{
    (void)n;
    return os_page_bytes;
}

static size_t has_manager(const unsigned *n)
{
    (void)n;
    return option_get(option_manager) != manager_off;
}

static size_t this_epoch(const unsigned *n)
{
    (void)n;
    return epoch;
}

/* ---- what can be done ---- */

static size_t new_arena(const unsigned *n)
{
    (void)n;
    return arenas++;
}

static size_t new_cache(const unsigned *n)
{
    (void)n;
    return caches++;
}

static size_t purge(const unsigned *n)
{
    (void)n;
    sutler_purge();
    return 0;
}

/* ---- names ---- */

enum changes { fixed, takes_any, acts }; /* whether something may be written: no; yes, ignored; nothing is read either */

static const struct row {
    const char *name; /* # is a number */
    size_t bytes;     /* of the value */
    size_t (*value)(const unsigned *numbers);
    enum changes changes;
} row[] = {
    {"epoch", 8, this_epoch, takes_any},
    {"stats.allocated", 8, allocated_bytes, fixed},
    {"stats.active", 8, active_bytes, fixed},
    {"stats.resident", 8, resident_bytes, fixed},
    {"stats.mapped", 8, mapped_bytes, fixed},
    {"stats.retained", 8, retained_bytes, fixed},
    {"stats.metadata", 8, metadata_bytes, fixed},
    {"stats.arenas.#.pactive", 8, active_pages, fixed},
    {"stats.arenas.#.pdirty", 8, dirty_pages, fixed},
    {"stats.arenas.#.pmuzzy", 8, none, fixed},
    {"stats.arenas.#.small.allocated", 8, small_bytes, fixed},
    {"stats.arenas.#.large.allocated", 8, large_bytes, fixed},
    {"stats.arenas.#.bins.#.curregs", 8, bin_live, fixed},
    {"stats.arenas.#.bins.#.curslabs", 8, bin_carved, fixed},
    {"arenas.narenas", 4, arena_count, fixed},
    {"arenas.page", 8, page_bytes, fixed},
    {"arenas.nbins", 4, bin_count, fixed},
    {"arenas.bin.#.size", 8, bin_bytes, fixed},
    {"arenas.bin.#.nregs", 4, one, fixed},
    {"arenas.create", 4, new_arena, fixed},
    {"tcache.create", 4, new_cache, fixed},
    {"tcache.flush", 4, none, takes_any},
    {"tcache.destroy", 4, none, takes_any},
    {"arena.#.purge", 0, purge, acts},
    {"arena.#.decay", 0, purge, acts},
    {"background_thread", 1, has_manager, takes_any},
};

/* Whether the name is of this form; its numbers. */
static bool matches(const char *form, const char *name, unsigned *numbers)
{
    for (; *form != '\0'; form++) {
        if (*form != '#') {
            if (*name++ != *form)
                return false;
            continue;
        }
        if (*name < '0' || *name > '9')
            return false;
        unsigned value = 0;
        for (; *name >= '0' && *name <= '9'; name++)
            value = value < 1000000 ? value * 10 + (unsigned)(*name - '0') : value;
        *numbers++ = value;
    }
    return *name == '\0';
}

static bool names_no_bin(const struct row *r, const unsigned *n)
{
    unsigned bin = r->value == bin_live || r->value == bin_carved ? n[1] : r->value == bin_bytes ? n[0] : 0;
    return bin >= CLASS_COUNT;
}

static const struct row *find(const char *name, unsigned *n)
{
    for (const struct row *r = row; r < row + ARRAY_LEN(row); r++)
        if (matches(r->name, name, n))
            return names_no_bin(r, n) ? NULL : r;
    return NULL;
}

static void refresh(void)
{
    struct sutler_stats now;
    snapshot_take(&now);
    size_t pages = os_resident_bytes();
    lock_take(&figures_lock);
    stats = now;
    resident = pages;
    snapshot_classes(class_stats);
    epoch++;
    lock_release(&figures_lock);
}

static int answer(const struct row *r, const unsigned *n, void *old, size_t *length)
{
    if (old == NULL || length == NULL)
        return 0;
    if (*length != r->bytes)
        return EINVAL;
    uint64_t value = r->value(n);
    memcpy(old, &value, r->bytes); /* little end first */
    return 0;
}

EXPORT int mallctl(const char *name, void *old, size_t *old_length, void *new, size_t new_length)
{
    unsigned numbers[2] = {0};
    const struct row *r = find(name, numbers);
    if (r == NULL || !core_ready())
        return ENOENT;
    if (new != NULL && r->changes != takes_any)
        return EPERM;
    if (new != NULL && new_length != r->bytes)
        return EINVAL;
    if (r->changes == acts) {
        r->value(numbers);
        return 0;
    }
    if (epoch == 0 || (new != NULL && r->value == this_epoch))
        refresh();
    lock_take(&figures_lock);
    int error = answer(r, numbers, old, old_length);
    lock_release(&figures_lock);
    return error;
}

/* Names are not kept as numbers. */
EXPORT int mallctlnametomib(const char *name, size_t *mib, size_t *length)
{
    (void)name, (void)mib, (void)length;
    return ENOENT;
}

EXPORT int mallctlbymib(const size_t *mib, size_t mib_length, void *old, size_t *old_length, void *new, size_t new_length)
{
    (void)mib, (void)mib_length, (void)old, (void)old_length, (void)new, (void)new_length;
    return ENOENT;
}

static void print(void (*write)(void *, const char *), void *opaque, const char *name, uint64_t value)
{
    struct line line = LINE_EMPTY;
    line_text(&line, name);
    line_text(&line, ": ");
    line_dec(&line, value);
    line_text(&line, "\n");
    line.text[line.used] = '\0';
    write(opaque, line.text);
}

static void to_standard_error(void *unused, const char *text)
{
    (void)unused;
    struct line line = LINE_EMPTY;
    line_text(&line, text);
    line_flush(&line, 2);
}

EXPORT void malloc_stats_print(void (*write)(void *, const char *), void *opaque, const char *options)
{
    (void)options;
    write = write != NULL ? write : to_standard_error;
    struct sutler_stats now;
    core_ready();
    snapshot_take(&now);
    write(opaque, "sutler: the heap\n");
#define STAT(field, is_bytes, doc) print(write, opaque, #field, now.field);
#include "stats/stats.def"
#undef STAT
}
