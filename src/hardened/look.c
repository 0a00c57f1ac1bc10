/* SPDX-License-Identifier: MIT */
#include "hardened/look.h"

#include <stdatomic.h>

#include "base/bits.h"
#include "hardened/own.h"
#include "hardened/shadow.h"
#include "heap/demand.h"
#include "heap/superblock.h"
#include "manager/hint.h"
#include "manager/jobs.h"
#include "marks/state.h"
#include "os/lock.h"
#include "os/os.h"

/* Others are waiting for the last piece to be read: it takes some 50 us. */
#define PIECE_BYTES ((size_t)256 << 10)
#define PIECES_MAX  4096u
/* It takes about as long to wake the manager as to read so much. */
#define HELPED_LEAST ((size_t)2 << 20)

/* Not a variable of the library's, which is a part of the program if that is linked with it. */
static struct os_span *piece;
static unsigned pieces;
static size_t noted_bytes;
static _Atomic unsigned taken;
/* Others may take pieces; and one of them does. */
static _Atomic bool is_open;
static _Atomic uint32_t others;
static _Atomic size_t bytes_read, outside_bytes_read;

/* ---- reading ---- */

/* A block that is free, kept, or on its way to or from the program holds no pointer that counts. */
static size_t look_at_blocks(enum marker by, const struct superblock *s, uintptr_t at, uintptr_t end)
{
    const size_t bytes = s->block_bytes;
    uintptr_t p = s->base, run = 0;
    size_t looked = 0;
    if (at > p)
        p += superblock_block_number(s, (void *)at) * bytes;
    end = min_size(end, s->base + s->blocks * bytes);
    for (; p < end; p += bytes) {
        const bool is_used = state_is_used(state_get((void *)p));
        if (is_used && run == 0)
            run = max_size(p, at);
        if (is_used ? p + bytes < end : run == 0)
            continue;
        const size_t length = min_size(is_used ? p + bytes : p, end) - run;
        shadow_mark_words(by, (const uint64_t *)run, length / sizeof(uint64_t));
        looked += length;
        run = 0;
    }
    return looked;
}

static size_t look_at_heap(enum marker by, struct os_span span)
{
    size_t looked = 0;
    for (uintptr_t at = span.start, next; at < span.end; at = next) {
        const struct superblock *s = superblock_of((void *)at);
        next = min_size(align_down(at, SLICE_BYTES) + SLICE_BYTES, span.end);
        if (s->slice.kind == slice_superblock) {
            looked += look_at_blocks(by, s, at, next);
        } else {
            shadow_mark_words(by, (const uint64_t *)at, (next - at) / sizeof(uint64_t));
            looked += next - at;
        }
    }
    return looked;
}

static bool is_heap(struct os_span span)
{
    return region_contains((void *)span.start) && region_contains((void *)(span.end - 1));
}

static void look(enum marker by, struct os_span span)
{
    const struct os_keys before = os_keys_open();
    if (is_heap(span)) {
        atomic_fetch_add(&bytes_read, look_at_heap(by, span));
    } else {
        shadow_mark_words(by, (const uint64_t *)span.start, (span.end - span.start) / sizeof(uint64_t));
        atomic_fetch_add(&bytes_read, span.end - span.start);
        atomic_fetch_add(&outside_bytes_read, span.end - span.start);
    }
    os_keys_restore(before);
}

/* ---- pieces ---- */

static void note(struct os_span span)
{
    if (pieces == PIECES_MAX || (piece == NULL && (piece = own_map(PIECES_MAX * sizeof *piece)) == NULL)) {
        look(marker_sweep, span);
        return;
    }
    piece[pieces++] = span;
    noted_bytes += span.end - span.start;
}

bool look_later(struct os_span pages)
{
    const bool is_outside = pages.end <= hot.region_base || pages.start >= hot.region_base + hot.flat_bytes;
    if (pages.start % LINE_BYTES != 0 || pages.end % LINE_BYTES != 0 ||
        !(is_heap(pages) || (is_outside && os_keys_are_known())))
        return false;
    for (uintptr_t at = pages.start, next; at < pages.end; at = next) {
        next = min_size(align_down(at, PIECE_BYTES) + PIECE_BYTES, pages.end);
        note((struct os_span){at, next});
    }
    return true;
}

static void take_pieces(enum marker by)
{
    for (unsigned i; (i = atomic_fetch_add(&taken, 1)) < pieces;)
        look(by, piece[i]);
}

/* Who is in by now is waited for: when the threads go on, pages may go. */
static void close_to_others(void)
{
    atomic_store(&is_open, false);
    for (uint32_t in; (in = atomic_load(&others)) != 0;)
        os_futex_wait(&others, in);
}

/* A thread can be woken now, but not made. */
static void ask_for_help(void)
{
    demand_raise();
    if (manager_is_there())
        manager_hint_slow(manager_asleep); /* which makes none, though it may have left by now */
}

struct looked look_now(void)
{
    const bool is_much = noted_bytes >= HELPED_LEAST && !background_thread_is_caller();
    atomic_store(&taken, 0);
    if (is_much) {
        atomic_store(&is_open, true);
        ask_for_help();
    }
    take_pieces(marker_sweep);
    if (is_much)
        close_to_others();
    pieces = 0;
    noted_bytes = 0;
    return (struct looked){atomic_exchange(&bytes_read, 0), atomic_exchange(&outside_bytes_read, 0)};
}

/* Stores `others` and then looks whether it is open; close_to_others the other way round. */
bool look_help(uint64_t budget_ns)
{
    (void)budget_ns;
    atomic_store(&others, 1);
    if (atomic_load(&is_open))
        take_pieces(marker_manager);
    atomic_store(&others, 0);
    os_futex_wake_all(&others);
    return false;
}

void look_recover(void)
{
    atomic_store(&is_open, false);
    atomic_store(&others, 0);
}
