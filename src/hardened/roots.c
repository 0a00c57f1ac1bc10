/* SPDX-License-Identifier: MIT */
#include "hardened/roots.h"

#include <string.h>

#include "base/bits.h"
#include "hardened/look.h"
#include "hardened/own.h"
#include "hardened/shadow.h"
#include "heap/mapping_table.h"
#include "heap/pass.h"
#include "marks/state.h"
#include "os/os.h"

#define PIECE_BYTES ((size_t)256 << 10)
#define FOUND_MAX   32u
#define OWN_STACK_BYTES 2048u /* of what is called from here, which has kept blocks' addresses; it takes more */

struct reader {
    enum os_pages which;
    size_t most;
    long pages;
    uint64_t *piece;
    bool may_look; /* where this mapping lies: nobody can take its pages away */
    size_t noted;  /* bytes, to be looked at later */
    /* Of the caller's stack; the table of mappings, descriptors and states, as they are now. */
    struct os_span passed_over[5];
    bool (*goes_on)(void);
    struct roots_read read;
};

/* What cannot be read has no bytes of the program's, or is guarded. */
static void read_span(struct reader *r, uintptr_t at, uintptr_t end, bool is_there)
{
    if (is_there && r->may_look && look_later((struct os_span){at, end})) {
        r->noted += end - at;
        return;
    }
    while (at < end && r->read.is_whole) {
        long n = os_memory_read(r->piece, at, min_size(end - at, PIECE_BYTES));
        if (n < 0) {
            r->read.is_whole = false;
            return;
        }
        const size_t odd = (size_t)n % LINE_BYTES; /* next to what is passed over */
        if (odd != 0)
            memset((char *)r->piece + n, 0, LINE_BYTES - odd);
        shadow_mark_words(marker_sweep, r->piece, align_up((size_t)n, LINE_BYTES) / sizeof(uint64_t));
        r->read.bytes += (size_t)n;
        r->read.outside_bytes += region_contains((void *)at) ? 0 : (size_t)n;
        at = n == 0 ? align_down(at, os_page_bytes) + os_page_bytes : at + (size_t)n;
        if (r->which == os_pages_tracked) {
            pass_yield();
            r->read.is_whole = r->goes_on();
        }
    }
}

/* The next of these ranges, if it is nearer. */
static void nearer(struct os_span *best, struct os_span range, uintptr_t at)
{
    if (range.end > at && range.start < best->start)
        *best = range;
}

/* Without what is the library's own. */
static void read_others(struct reader *r, struct os_pages_range range)
{
    for (uintptr_t at = range.span.start, end = range.span.end; at < end;) {
        struct os_span own, next = {end, end};
        if (own_range_after(at, &own))
            nearer(&next, own, at);
        for (unsigned i = 0; i < ARRAY_LEN(r->passed_over); i++)
            nearer(&next, r->passed_over[i], at);
        if (next.start > at)
            read_span(r, at, next.start, range.is_there);
        at = next.end;
    }
}

static bool read_mapping(void *context, struct os_mapping mapping)
{
    struct reader *r = context;
    struct os_pages_range found[FOUND_MAX];
    if (r->which == os_pages_tracked && (!mapping.is_writable || !os_track_mapping(mapping.span)))
        return true;
    if (!mapping.is_writable && !mapping.is_anonymous)
        return true; /* code, constants, and what the loader protects: much, and no place of the program's */
    r->may_look = r->which != os_pages_tracked && mapping.is_anonymous;
    for (uintptr_t at = mapping.span.start; at < mapping.span.end && r->read.is_whole;) {
        if (r->read.bytes + r->noted > r->most) { /* what is found is protected again, so all of it is read */
            r->read.is_whole = false;
            r->read.is_cut = true;
            break;
        }
        int count = os_pages_find(r->pages, r->which, &at, mapping.span.end, found, FOUND_MAX);
        if (count < 0) {
            if (r->which == os_pages_tracked)
                break; /* it is gone, or another's */
            r->read.is_whole = false;
        }
        for (int i = 0; i < count; i++)
            read_others(r, found[i]);
    }
    return r->read.is_whole;
}

NOINLINE struct roots_read roots_mark(enum os_pages which, const void *below, size_t most, bool (*goes_on)(void))
{
    static uint64_t *piece;
    struct reader r = {.which = which, .most = most, .goes_on = goes_on, .read.is_whole = true};
    if (piece == NULL && (piece = own_map(PIECE_BYTES)) == NULL)
        return (struct roots_read){0};
    r.piece = piece;
    size_t table_bytes;
    const bool is_stopped = which != os_pages_tracked;
    if (!is_stopped)
        lock_take(&mapping_lock);
    const uintptr_t here = (uintptr_t)__builtin_frame_address(0), table = (uintptr_t)mapping_table_where(&table_bytes);
    if (!is_stopped)
        lock_release(&mapping_lock);
    r.passed_over[0] = (struct os_span){align_down(here - OWN_STACK_BYTES, 16), (uintptr_t)below};
    r.passed_over[1] = (struct os_span){table, table + table_bytes};
    const uintptr_t states = (uintptr_t)state_of((void *)hot.region_base);
    r.passed_over[2] = (struct os_span){states, states + (hot.flat_bytes >> STATE_SHIFT)};
    const uintptr_t descriptors = (uintptr_t)hot.descriptors;
    r.passed_over[3] = (struct os_span){descriptors, descriptors + (hot.flat_bytes >> SLICE_SHIFT << DESCRIPTOR_SHIFT)};
    const uintptr_t handlers = (uintptr_t)state_of(region_below());
    r.passed_over[4] = (struct os_span){handlers, handlers + (REGION_BELOW_BYTES >> STATE_SHIFT)};
    r.pages = os_pages_open();
    if (r.pages < 0)
        return (struct roots_read){0};
    r.read.is_whole = os_mappings_each(read_mapping, &r) && r.read.is_whole;
    const struct looked looked = look_now();
    r.read.bytes += looked.bytes;
    r.read.outside_bytes += looked.outside_bytes;
    os_pages_close(r.pages);
    return r.read;
}
