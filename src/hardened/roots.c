/* SPDX-License-Identifier: MIT */
#include "hardened/roots.h"

#include <string.h>

#include "base/bits.h"
#include "hardened/own.h"
#include "hardened/shadow.h"
#include "heap/mapping_table.h"
#include "heap/pass.h"
#include "os/os.h"

#define PIECE_BYTES ((size_t)256 << 10)
#define FOUND_MAX   64u
#define LINE_BYTES  (8 * sizeof(uint64_t))

struct reader {
    enum os_pages which;
    long pages;
    uint64_t *piece;
    struct os_span passed_over[2]; /* of the caller's stack; the table of mappings, as it is now */
    bool (*goes_on)(void);
    struct roots_read read;
};

/* What cannot be read has no bytes of the program's, or is guarded. */
static void read_span(struct reader *r, uintptr_t at, uintptr_t end)
{
    while (at < end && r->read.is_whole) {
        long n = os_memory_read(r->piece, at, min_size(end - at, PIECE_BYTES));
        if (n < 0) {
            r->read.is_whole = false;
            return;
        }
        const size_t odd = (size_t)n % LINE_BYTES; /* next to what is passed over */
        if (odd != 0)
            memset((char *)r->piece + n, 0, LINE_BYTES - odd);
        shadow_mark_words(r->piece, align_up((size_t)n, LINE_BYTES) / sizeof(uint64_t));
        r->read.bytes += (size_t)n;
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
static void read_others(struct reader *r, uintptr_t at, uintptr_t end)
{
    while (at < end) {
        struct os_span own, next = {end, end};
        if (own_range_after(at, &own))
            nearer(&next, own, at);
        for (unsigned i = 0; i < ARRAY_LEN(r->passed_over); i++)
            nearer(&next, r->passed_over[i], at);
        if (next.start > at)
            read_span(r, at, next.start);
        at = next.end;
    }
}

static bool read_mapping(void *context, struct os_span mapping, bool is_writable)
{
    struct reader *r = context;
    struct os_span found[FOUND_MAX];
    if (r->which == os_pages_tracked && (!is_writable || !os_track_mapping(mapping)))
        return true;
    for (uintptr_t at = mapping.start; at < mapping.end && r->read.is_whole;) {
        int count = os_pages_find(r->pages, r->which, &at, mapping.end, found, FOUND_MAX);
        if (count < 0) {
            if (r->which == os_pages_tracked)
                break; /* it is gone, or another's */
            r->read.is_whole = false;
        }
        for (int i = 0; i < count; i++)
            read_others(r, found[i].start, found[i].end);
    }
    return r->read.is_whole;
}

NOINLINE struct roots_read roots_mark(enum os_pages which, const void *below, bool (*goes_on)(void))
{
    static uint64_t *piece;
    struct reader r = {.which = which, .goes_on = goes_on, .read.is_whole = true};
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
    r.passed_over[0] = (struct os_span){here & ~(uintptr_t)15, (uintptr_t)below};
    r.passed_over[1] = (struct os_span){table, table + table_bytes};
    r.pages = os_pages_open();
    if (r.pages < 0)
        return (struct roots_read){0};
    r.read.is_whole = os_mappings_each(read_mapping, &r) && r.read.is_whole;
    os_pages_close(r.pages);
    return r.read;
}
