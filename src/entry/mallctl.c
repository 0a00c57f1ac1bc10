/* SPDX-License-Identifier: MIT
 *
 * jemalloc's control (jemalloc(3), "MALLCTL NAMESPACE"), as far as programs ask it about their memory.  A program
 * linked with jemalloc and run under this library (Debian's redis) would otherwise be answered by jemalloc, whose heap
 * is empty: a fragmentation of 0 or infinity, which some act upon.  What redis asks for is answered for our heap; other
 * names are unknown (ENOENT), so that who looks for jemalloc itself (thread.allocatedp, opt.*, prof.*) does not find
 * it.
 *
 * Figures are those of the last time "epoch" was written, as there.  Our size classes are its bins, with slabs of one
 * region, since a superblock is carved bit by bit: what redis computes from them is the bytes in free blocks.  Arenas
 * and caches are names only (docs/decisions/0013-no-arenas.md): one with functions of its own for getting memory is
 * refused.
 *
 * Only in the shared library: a static program is linked with one allocator.
 */
#include <errno.h>
#include <pthread.h>
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
static struct figures {
    size_t epoch, page_bytes, bin_count, has_manager, nothing, one, arenas, caches;
    size_t allocated_bytes, active_bytes, resident_bytes, mapped_bytes, retained_bytes, metadata_bytes;
    size_t bin_bytes[CLASS_COUNT];
    /* From here on an arena's.  All blocks are arena 0's; the others have none. */
    size_t active_pages, dirty_pages, small_bytes, large_bytes;
    size_t bin_live[CLASS_COUNT], bin_carved[CLASS_COUNT];
} figures = {.one = 1, .arenas = 1, .bin_count = CLASS_COUNT};

static void take_figures(const struct sutler_stats *stats, size_t resident)
{
    struct figures *f = &figures;
    f->page_bytes = os_page_bytes;
    f->has_manager = option_get(option_manager) != manager_off;
    f->allocated_bytes = stats->live_bytes;
    f->active_bytes = stats->live_bytes + stats->free_bytes;
    f->resident_bytes =
        max_size(f->active_bytes, min_size(resident, f->active_bytes + stats->dirty_bytes + stats->reserve_bytes));
    f->mapped_bytes = stats->mapped_bytes;
    f->retained_bytes = stats->mapped_bytes - min_size(stats->mapped_bytes, f->resident_bytes);
    f->metadata_bytes = stats->mapped_bytes >> (SLICE_SHIFT - DESCRIPTOR_SHIFT);
    f->active_pages = f->active_bytes / os_page_bytes;
    f->dirty_pages = stats->dirty_bytes / os_page_bytes;
    f->small_bytes = stats->live_bytes - min_size(stats->live_bytes, stats->large_bytes);
    f->large_bytes = stats->large_bytes;
}

static void take_bins(void)
{
    struct snapshot_class class[CLASS_COUNT];
    snapshot_classes(class);
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        figures.bin_bytes[c] = size_class[c].bytes;
        figures.bin_live[c] = class[c].live;
        figures.bin_carved[c] = class[c].live + class[c].free;
    }
}

static void in_child(void)
{
    lock_reset(&figures_lock);
}

static void refresh(void)
{
    static _Atomic bool is_registered;
    struct sutler_stats stats;
    if (!atomic_exchange(&is_registered, true))
        pthread_atfork(NULL, NULL, in_child);
    snapshot_take(&stats);
    size_t resident = os_resident_bytes();
    lock_take(&figures_lock);
    take_figures(&stats, resident);
    take_bins();
    figures.epoch++;
    lock_release(&figures_lock);
}

/* ---- names ---- */

/* What comes of a call: nothing may be written; what is written is ignored; asking counts it up; memory is purged, and
 * nothing is read either. */
enum effect { fixed, takes_any, counts, purges };

#define FIGURE(field) offsetof(struct figures, field)

static const struct row {
    const char *name; /* # is a number */
    size_t bytes;     /* of the value */
    size_t figure;
    enum effect effect;
    unsigned bin; /* which of the numbers, from 1 on, is a bin's; 0: none */
} row[] = {
    {"epoch", 8, FIGURE(epoch), takes_any, 0},
    {"stats.allocated", 8, FIGURE(allocated_bytes), fixed, 0},
    {"stats.active", 8, FIGURE(active_bytes), fixed, 0},
    {"stats.resident", 8, FIGURE(resident_bytes), fixed, 0},
    {"stats.mapped", 8, FIGURE(mapped_bytes), fixed, 0},
    {"stats.retained", 8, FIGURE(retained_bytes), fixed, 0},
    {"stats.metadata", 8, FIGURE(metadata_bytes), fixed, 0},
    {"stats.arenas.#.pactive", 8, FIGURE(active_pages), fixed, 0},
    {"stats.arenas.#.pdirty", 8, FIGURE(dirty_pages), fixed, 0},
    {"stats.arenas.#.pmuzzy", 8, FIGURE(nothing), fixed, 0},
    {"stats.arenas.#.small.allocated", 8, FIGURE(small_bytes), fixed, 0},
    {"stats.arenas.#.large.allocated", 8, FIGURE(large_bytes), fixed, 0},
    {"stats.arenas.#.bins.#.curregs", 8, FIGURE(bin_live), fixed, 2},
    {"stats.arenas.#.bins.#.curslabs", 8, FIGURE(bin_carved), fixed, 2},
    {"arenas.narenas", 4, FIGURE(arenas), fixed, 0},
    {"arenas.page", 8, FIGURE(page_bytes), fixed, 0},
    {"arenas.nbins", 4, FIGURE(bin_count), fixed, 0},
    {"arenas.bin.#.size", 8, FIGURE(bin_bytes), fixed, 1},
    {"arenas.bin.#.nregs", 4, FIGURE(one), fixed, 0},
    {"arenas.create", 4, FIGURE(arenas), counts, 0},
    {"tcache.create", 4, FIGURE(caches), counts, 0},
    {"tcache.flush", 4, FIGURE(nothing), takes_any, 0},
    {"tcache.destroy", 4, FIGURE(nothing), takes_any, 0},
    {"arena.#.purge", 0, FIGURE(nothing), purges, 0},
    {"arena.#.decay", 0, FIGURE(nothing), purges, 0},
    {"background_thread", 1, FIGURE(has_manager), takes_any, 0},
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

static const struct row *find(const char *name, unsigned *n)
{
    for (const struct row *r = row; r < row + ARRAY_LEN(row); r++)
        if (matches(r->name, name, n))
            return r->bin != 0 && n[r->bin - 1] >= CLASS_COUNT ? NULL : r;
    return NULL;
}

static size_t *figure_of(const struct row *r, const unsigned *n)
{
    if (r->figure >= FIGURE(active_pages) && n[0] != 0 && n[0] != ALL_ARENAS)
        return &figures.nothing;
    return (size_t *)((char *)&figures + r->figure) + (r->bin != 0 ? n[r->bin - 1] : 0);
}

static int answer(const struct row *r, const unsigned *n, void *old, size_t *length)
{
    if (old == NULL || length == NULL)
        return 0;
    if (*length != r->bytes)
        return EINVAL;
    size_t *figure = figure_of(r, n);
    memcpy(old, figure, r->bytes); /* little end first */
    *figure += r->effect == counts;
    return 0;
}

EXPORT int mallctl(const char *name, void *old, size_t *old_length, void *new, size_t new_length)
{
    unsigned numbers[2] = {0};
    const struct row *r = find(name, numbers);
    if (r == NULL || !core_ready())
        return ENOENT;
    if (new != NULL && r->effect != takes_any)
        return EPERM;
    if (new != NULL && new_length != r->bytes)
        return EINVAL;
    if (r->effect == purges) {
        sutler_purge();
        return 0;
    }
    if (figures.epoch == 0 || (new != NULL && r->figure == FIGURE(epoch)))
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

EXPORT int mallctlbymib(const size_t *mib, size_t mib_length, void *old, size_t *old_length, void *new,
                        size_t new_length)
{
    (void)mib, (void)mib_length, (void)old, (void)old_length, (void)new, (void)new_length;
    return ENOENT;
}

static void print(void (*write)(void *, const char *), void *opaque, const char *name, uint64_t value)
{
    struct line line = LINE_EMPTY;
    line_add(&line, "%s: %lu\n", name, value);
    write(opaque, line_end(&line));
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
