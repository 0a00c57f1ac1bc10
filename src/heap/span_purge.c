/* SPDX-License-Identifier: MIT
 *
 * Giving the pages of free spans back: one walk over all slices in the order of their addresses, from span to span.  It
 * looks at so many descriptors at a time as take some ten microseconds, and lets go of the lock in between.  What is to
 * be purged is taken out of the bins, in batches, so that the program goes on taking other spans while the system
 * takes the pages.
 *
 * Ages are the slices' own: neighbours that were freed later, and merged with them, make no difference.  Slices that
 * are freed behind the walk wait for the next one.
 */
#include "heap/span_purge.h"

#include "heap/arena.h"
#include "heap/huge_policy.h"
#include "heap/purge_batch.h"
#include "heap/huge.h"
#include "heap/prefault_pool.h"
#include "heap/span_cache.h"
#include "os/os.h"

#define BATCH 64
#define BATCH_SLICES (64ul << 20 >> SLICE_SHIFT)
/* Slices in a row that the system would not take. */
#define REFUSED_MAX 1024u
/* At least so much of a run is looked at, so that what is chosen of it can end where a huge page does. */
#define RUN_LOOKS_MIN (2 * HUGE_PAGE_SLICES)

/* How far a walk goes while it holds the lock, in descriptors that follow each other; one that lies apart is as dear as
 * so many of them. */
#define HOLD_LOOKS 2048u
#define STEP_LOOKS 16u

struct run {
    uint32_t first;
    uint32_t slices;
};

/* Taken out of the bins, to be purged. */
struct batch {
    unsigned count;
    size_t slices, most;
    struct run run[BATCH];
};

/* ---- purging a batch ---- */

/* Releases the lock and, if somebody waits for it, pauses: a thread that is woken and finds it taken once more would
 * sleep again.  A walk in pieces does not take it again so soon. */
static void release_to_others(const struct span_walk *w)
{
    const uint64_t moment_ns = 50000;
    bool is_wanted = !w->is_in_pieces && lock_is_contended(&span_lock);
    lock_release(&span_lock);
    if (is_wanted)
        os_sleep(moment_ns);
}

static void put_back(const struct batch *b, struct span_returned sum, struct span_walk *w)
{
    lock_take(&span_lock);
    span_count_returned(sum);
    for (unsigned i = 0; i < b->count; i++) {
        uint32_t span = arena_insert_merged(b->run[i].first, b->run[i].slices);
        if (b->run[i].first + b->run[i].slices == w->at)
            w->span = span;
    }
    release_to_others(w);
}

/* Slice by slice, for some are locked.  Returns the bytes purged. */
static size_t purge_by_slices(struct span_walk *w, struct run run, struct span_returned *sum)
{
    size_t purged = 0;
    for (uint32_t at = run.first; at < run.first + run.slices && w->refused < REFUSED_MAX; at++) {
        if (!os_purge(slice_address(at), SLICE_BYTES)) {
            w->refused++;
            continue;
        }
        w->refused = 0;
        span_forget_pages(at, 1, sum);
        purged += SLICE_BYTES;
    }
    return purged;
}

/* Returns the bytes purged.  What is refused stays as it was; if that is much in a row all may be locked (mlockall),
 * and the walk ends. */
static size_t purge_batch(struct batch *b, struct span_walk *w)
{
    struct purge_batch pages = {0};
    struct span_returned sum = {0};
    size_t purged = 0;
    for (unsigned i = 0; i < b->count; i++)
        purge_batch_add(&pages, slice_address(b->run[i].first), (size_t)b->run[i].slices << SLICE_SHIFT);
    purge_batch_flush(&pages);
    for (unsigned i = 0; i < b->count; i++) {
        const struct run run = b->run[i];
        if (pages.refused) {
            purged += purge_by_slices(w, run, &sum);
        } else {
            span_forget_pages(run.first, run.slices, &sum);
            purged += (size_t)run.slices << SLICE_SHIFT;
        }
    }
    put_back(b, sum, w);
    b->count = 0;
    b->slices = 0;
    if (!pages.refused)
        w->refused = 0;
    if (w->refused >= REFUSED_MAX) {
        w->end = w->at;
        w->changed = false;
    }
    return purged;
}

/* ---- within a free span ---- */

enum age { age_bare, age_young, age_old };

static enum age age_of(const struct span_walk *w, uint32_t slice)
{
    const struct slice *s = slice_at(slice);
    if (!slice_has_pages(s))
        return age_bare;
    return w->what == purge_force || s->is_aged ? age_old : age_young;
}

/* Slices of one age from `at` on, `most` of them at most. */
static uint32_t run_of(const struct span_walk *w, enum age age, size_t most)
{
    uint32_t run = 0;
    while (run < most && age_of(w, w->at + run) == age)
        run++;
    return run;
}

/* Whether these slices stay, for they are less than half of a huge page that would be broken. */
static bool stays_whole(uint32_t first, uint32_t slices)
{
    return slices > 0 && slices * 2 < HUGE_PAGE_SLICES && huge_is_advised(first);
}

/* Of so many old slices from `at` on: how many this walk purges, and how many *before those stay.  While the program
 * works, a huge page is broken only if most of it goes; in the arena for large blocks only then, as long as they get
 * huge pages (huge_policy.h). */
static uint32_t choose(const struct span_walk *w, uint32_t slices, uint32_t *before)
{
    *before = 0;
    if (w->what != purge_decay)
        return slices;
    if (!slice_at(w->at)->is_large)
        return slices * 2 >= HUGE_PAGE_SLICES || huge_is_worth_splitting(w->at, 1) ? slices : 0;
    if (!huge_policy_expects_full(HUGE_POLICY_BYTES_MIN))
        return slices;
    const uint32_t end = w->at + slices;
    const uint32_t head = (uint32_t)min_size(slices, -w->at % HUGE_PAGE_SLICES); /* on a page that begins before them */
    const uint32_t tail = slices > head ? end % HUGE_PAGE_SLICES : 0;            /* on one that ends behind them */
    *before = stays_whole(w->at, head) ? head : 0;
    return slices - *before - (stays_whole(end - tail, tail) ? tail : 0);
}

static void grow_old(struct span_walk *w, uint32_t slices)
{
    uint32_t before;
    for (uint32_t i = 0; i < slices; i++)
        slice_seen_free(slice_at(w->at + i));
    w->changed |= choose(w, slices, &before) > 0;
}

static void take_out(struct batch *b, struct span_walk *w, uint32_t slices)
{
    arena_cut(w->span, w->at, slices);
    b->run[b->count++] = (struct run){w->at, slices};
    b->slices += slices;
    w->span = w->at + slices;
}

static bool is_full(const struct batch *b)
{
    return b->count == BATCH || b->slices >= b->most || (b->count > 0 && b->most - b->slices < RUN_LOOKS_MIN);
}

static void use_looks(struct span_walk *w, unsigned looks)
{
    w->looks -= (unsigned)min_size(looks, w->looks);
}

/* How many old slices from `at` on may go at once.  A piece is one run, which ends with a huge page: with this one, or
 * with the next if little is left of this. */
static size_t run_most(const struct span_walk *w, const struct batch *b)
{
    if (!w->is_in_pieces)
        return b->most - b->slices;
    uint32_t rest = HUGE_PAGE_SLICES - w->at % HUGE_PAGE_SLICES;
    return rest * 2 < HUGE_PAGE_SLICES ? rest + HUGE_PAGE_SLICES : rest;
}

/* Looks at one run of the free span that ends at `end`, and takes out of it what is chosen. */
static void look_at_run(struct span_walk *w, struct batch *b, uint32_t end)
{
    enum age age = age_of(w, w->at);
    size_t most = min_size(end - w->at, max_size(w->looks, RUN_LOOKS_MIN));
    uint32_t run = run_of(w, age, age == age_old ? min_size(most, run_most(w, b)) : most), before = 0, chosen = 0;
    if (age == age_young)
        grow_old(w, run);
    else if (age == age_old)
        chosen = choose(w, run, &before);
    use_looks(w, run);
    if (chosen == 0) {
        w->at += run;
        return;
    }
    w->at += before;
    take_out(b, w, chosen);
    w->at += chosen;
}

/* ---- from span to span ---- */

/* The end of the free span that the walk is in; 0 if it knows of none.  The tag of a last slice leads back to a span
 * that was merged into another meanwhile. */
static uint32_t span_end(struct span_walk *w)
{
    const struct slice *at = slice_at(w->at);
    if (at->kind == slice_free)
        w->span = w->at;
    else if (at->kind == slice_free_end)
        w->span = at->first;
    const struct slice *s = slice_at(w->span);
    if (s->kind != slice_free || w->at < w->span || w->at - w->span >= s->slices)
        return 0;
    return w->span + s->slices;
}

/* Slices that may be passed over at once from `at` on, which lies in no free span. */
static size_t step_over(uint32_t at)
{
    const struct arena *a = arena_of(at);
    return at >= a->fresh_first && at < a->fresh_end ? a->fresh_end - at : span_passed(at);
}

/* Moves to the next slice that may begin a span. */
static void walk_on(struct span_walk *w)
{
    if (slice_at(w->at)->kind != slice_unknown)
        w->strays = SLICE_NONE;
    else if (w->strays == SLICE_NONE)
        w->strays = w->at;
    w->at = region_slice_from(w->at + (uint32_t)step_over(w->at));
}

/* The walk is in a span again: back to where it strayed, if that lies in the span. */
static void go_back(struct span_walk *w)
{
    if (w->strays != SLICE_NONE)
        w->at = w->strays > w->span ? w->strays : w->span;
    w->strays = SLICE_NONE;
}

/* Fills the batch, as far as one hold of the lock goes. */
static void gather(struct span_walk *w, struct batch *b)
{
    lock_take(&span_lock);
    for (w->looks = HOLD_LOOKS; w->looks > 0 && w->at < w->end && !is_full(b);) {
        bool is_apart = slice_at(w->at)->kind != slice_unknown;
        use_looks(w, is_apart ? STEP_LOOKS : 1);
        uint32_t end = span_end(w);
        if (end == 0) {
            walk_on(w);
            continue;
        }
        go_back(w);
        if (w->looks > 0)
            look_at_run(w, b, end);
    }
    release_to_others(w);
}

/* ---- all ---- */

void span_walk_begin(struct span_walk *w, enum purge_what what, bool in_pieces)
{
    *w = (struct span_walk){.what = what, .is_in_pieces = in_pieces, .strays = SLICE_NONE};
    w->wasted_before = prefault_pool_counts().wasted_bytes;
    span_cache_purge(what == purge_force, &w->changed);
    w->at = region_slice_from(0);
    w->end = region_end();
}

bool span_walk_is_over(const struct span_walk *w)
{
    return w->at >= w->end || !pass_goes_on(w->what);
}

size_t span_walk_piece(struct span_walk *w)
{
    struct batch b = {.most = RUN_LOOKS_MIN}; /* full with its first run */
    gather(w, &b);
    return b.count > 0 ? purge_batch(&b, w) : 0;
}

void span_walk_end(struct span_walk *w)
{
    w->changed |= w->what == purge_force && span_counts().dirty_bytes > 0;
    if (prefault_pool_counts().wasted_bytes != w->wasted_before) {
        lock_take(&span_lock);
        prefault_pool_shrink();
        lock_release(&span_lock);
    }
}

/* Purges free spans of at most `most` bytes together. */
static size_t purge_spans(struct span_walk *w, size_t most)
{
    size_t purged = 0;
    struct batch b = {0};
    while (!span_walk_is_over(w)) {
        if (b.count == 0)
            pass_yield();
        b.most = min_size(BATCH_SLICES, (most - purged) >> SLICE_SHIFT);
        if (b.most == 0)
            break;
        gather(w, &b);
        if (b.count > 0 && (is_full(&b) || pass_is_wanted()))
            purged += purge_batch(&b, w);
    }
    if (b.count > 0)
        purged += purge_batch(&b, w);
    return purged;
}

size_t span_purge(enum purge_what what, size_t keep_bytes, bool *changed)
{
    struct span_walk w;
    span_walk_begin(&w, what, false);
    size_t dirty = span_counts().dirty_bytes;
    size_t most = keep_bytes > 0 ? dirty - min_size(dirty, keep_bytes) : SIZE_MAX;
    size_t purged = purge_spans(&w, most);
    span_walk_end(&w);
    *changed |= w.changed;
    return purged;
}
