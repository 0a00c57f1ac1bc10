/* SPDX-License-Identifier: MIT
 *
 * Blocks of the hardened library that lie in no superblock: spans, mappings of their own, and those for signal
 * handlers.  And every pointer that is none of ours.
 *
 * A large block ends in a page that cannot be touched.  Freed, it is cleared: up to CLEARED_MAX by writing zeros, above
 * by giving its pages back, and there it cannot be touched at all.  Then its addresses are kept for as long as the
 * places of one ring last.  A fork leaves each block in the ring, or on its way and lost.
 */
#include <errno.h>
#include <stdatomic.h>

#include "hardened/hardened.h"
#include "hardened/report.h"
#include "hardened/resolve.h"
#include "hardened/sweep.h"
#include "hardened/trace.h"
#include "heap/filling.h"
#include "heap/grown.h"
#include "heap/large.h"
#include "heap/mapping.h"
#include "heap/mapping_table.h"
#include "heap/signal_safe.h"
#include "os/os.h"

#define PLACES 8u
#define CLEARED_MAX ((size_t)1 << 20)

static void *_Atomic place[PLACES];
static _Atomic uint32_t at; /* only says which is next */

/* ---- what there is at an address ---- */

static bool mapping_live(const void *p, struct live *live, bool *is_quarantined)
{
    struct mapping m;
    if ((uintptr_t)p % os_page_bytes != 0 || !mapping_look(p, &m))
        return false;
    *live = (struct live){.bytes = m.usable,
                          .size = m.usable - m.slack,
                          .guard = m.bytes - m.usable,
                          .family = m.family,
                          .kind = block_mapping};
    *is_quarantined = m.is_quarantined;
    return true;
}

/* Its bytes and kind; `bytes` is 0 where no block can start. */
static struct live live_of(const void *p)
{
    if (signal_safe_contains(p))
        return (struct live){.bytes = signal_safe_bytes(p), .kind = block_signal_safe};
    const struct superblock *s = superblock_of(p);
    switch (slice_kind(slice_at(slice_of(p)))) {
    case slice_superblock:
    case slice_quarantine: /* it was found damaged: live blocks stay so */
    case slice_tail:
        return (struct live){.bytes = s->block_bytes, .kind = block_superblock};
    case slice_large:
        return (struct live){
            .bytes = large_span_bytes(p) - marks.guard_bytes, .guard = marks.guard_bytes, .kind = block_large};
    default:
        return (struct live){0};
    }
}

enum found harden_find(const void *p, struct live *live)
{
    *live = (struct live){0};
    if (!core_ready())
        return found_nothing;
    if (harden_has_state(p) && (uintptr_t)p % BLOCK_ALIGNMENT == 0) {
        uint8_t state = state_get(p);
        *live = live_of(p);
        if (state == STATE_FREED)
            return found_freed;
        if (state_is_live(state) && live->bytes != 0) {
            live->size = live->bytes - state_slack(p, state, live->bytes);
            live->family = state_family(state);
            live->state = state;
            return found_live;
        }
        if (live->bytes != 0)
            return found_nothing;
    }
    bool is_quarantined = false;
    if (!slow_enter())
        return found_unknown;
    bool found = mapping_live(p, live, &is_quarantined);
    slow_leave();
    return !found ? found_nothing : is_quarantined ? found_freed : found_live;
}

/* ---- taking ---- */

/* With the sweep, what leaves quarantine is not free yet; and what is kept by then may have been given back on the way.
 * A handler that interrupted a slow path must not wait for the locks that this takes. */
bool quarantine_release_everything(void)
{
    if (in_slow_path)
        return false;
    const uint64_t before = resolve_count();
    bool any = quarantine_release_all();
    any |= large_release_all();
    sweep_now();
    return marks.sweep == sweep_off ? any : resolve_count() != before;
}

static void guard(void *p, struct live live, bool guarded)
{
    if (marks.guard_bytes != 0)
        os_guard((char *)p + live.bytes, live.guard, guarded);
}

/* The table's lock is held in slow paths only: a signal handler that comes meanwhile must not wait for it.  Who does
 * not enter here has entered: a handler that interrupted a slow path is sent away before. */
static bool note_mapping(const void *p, struct live live, bool is_quarantined)
{
    const bool entered = slow_enter();
    bool noted = mapping_note(p, live.bytes, live.bytes - live.size, live.family, is_quarantined);
    if (entered)
        slow_leave();
    return noted;
}

/* `live` is the block as it is now; whatever it holds stays. */
static void dress_large(void *p, struct live live)
{
    size_t slack = live.bytes - live.size;
    if (mitigated(mitigation_canary))
        canary_set(p, live.size, slack);
    guard(p, live, true);
    if (live.kind == block_mapping)
        note_mapping(p, live, false);
    else
        state_set_live(p, live.bytes, slack, live.family);
}

static size_t padded(size_t size)
{
    return size + marks.pad + marks.guard_bytes;
}

/* The block for `size` bytes.  The guard of a mapping begins right behind them, and takes all the room it has. */
static struct live live_in(struct block block, size_t size, enum family family)
{
    const size_t with_guard = block.kind == block_mapping ? align_up(padded(size), os_page_bytes) : block.bytes,
                 bytes = with_guard - marks.guard_bytes;
    return (struct live){
        .bytes = bytes, .size = size, .guard = block.bytes - bytes, .family = family, .kind = block.kind};
}

void *large_harden(size_t size, size_t alignment, bool *zero, enum family family)
{
    void *p = allocate_plain(padded(size), alignment, zero);
    if (unlikely(p == NULL) && (quarantine_release_everything() || sweep_give_in()))
        p = allocate_plain(padded(size), alignment, zero);
    if (unlikely(p == NULL))
        return NULL;
    struct block block = block_find(p);
    if (unlikely(block.kind == block_signal_safe)) {
        clear_block(p, block.bytes);
        return harden_block(p, size, block.bytes, family);
    }
    dress_large(p, live_in(block, size, family));
    return p;
}

void *large_harden_grown(size_t size, enum family family)
{
    if (size < GROWN_BYTES_MIN || size > PTRDIFF_MAX || !grown_may_be_mapping() || !slow_enter())
        return NULL;
    void *p = large_take_mapping(padded(size));
    slow_leave();
    if (p != NULL)
        dress_large(p, live_in(block_find(p), size, family));
    return p;
}

/* A mapping with room for `size`, or of which not enough would go back, stays as it is: only its guard begins
 * elsewhere.  False if it does not. */
static bool stays(void *p, struct live live, size_t asked, size_t size)
{
    if (live.kind != block_mapping || !slow_enter())
        return false;
    const bool fits = mapping_stays(p, asked);
    slow_leave();
    if (!fits)
        return false;
    const struct block whole = {.kind = block_mapping, .bytes = live.bytes + live.guard};
    const struct live now = live_in(whole, size, live.family);
    if (now.bytes > live.bytes && marks.guard_bytes != 0)
        os_guard((char *)p + live.bytes, now.bytes - live.bytes, false);
    dress_large(p, now);
    return true;
}

void *large_reharden(void *p, struct live live, size_t size)
{
    if (size > PTRDIFF_MAX || (live.kind != block_large && live.kind != block_mapping))
        return NULL;
    if (size < live.size)
        clear_bytes((char *)p + size, live.size - size);
    if (mitigated(mitigation_canary))
        memset((char *)p + live.size, 0, canary_length(live.bytes - live.size));
    const size_t asked = padded(max_size(size, CLASS_BYTES_MAX + 1));
    if (stays(p, live, asked, size))
        return p;
    guard(p, live, false);
    void *moved = NULL;
    if (slow_enter()) {
        moved = large_resize(p, asked, false);
        slow_leave_and_hint(slow_gave);
    }
    if (moved == NULL) {
        dress_large(p, live);
        return NULL;
    }
    dress_large(moved, live_in(block_find(moved), size, live.family));
    return moved;
}

/* ---- freeing ---- */

/* Zeros, of any alignment. */
void clear_bytes(char *p, size_t bytes)
{
    if (!mitigated(mitigation_zero))
        return;
    char *first = (char *)align_up((uintptr_t)p, os_page_bytes),
         *end = (char *)align_down((uintptr_t)p + bytes, os_page_bytes);
    if (bytes <= CLEARED_MAX || !os_purge(first, (size_t)(end - first))) {
        clear_by_pages(p, bytes);
        return;
    }
    memset(p, 0, (size_t)(first - p));
    memset(end, 0, (size_t)(p + bytes - end));
}

static bool is_guarded_whole(struct live live)
{
    return live.kind == block_mapping || live.bytes > (marks.sweep == sweep_off ? CLEARED_MAX : 0);
}

/* The system refuses to guard what is locked, but may have guarded what lies before it. */
static void clear_large(void *p, struct live live)
{
    if (is_guarded_whole(live) && mitigated(mitigation_guard)) {
        if (os_guard(p, live.bytes, true))
            return;
        os_guard(p, live.bytes, false);
    }
    clear_bytes(p, live.bytes);
}

/* Its size is its own no more: what is left of a block in quarantine is found by its slice, or the table.  False if
 * there is none. */
static bool find_freed(const void *p, struct live *live)
{
    bool is_quarantined;
    if (harden_has_state(p) && state_get(p) == STATE_FREED) {
        *live = live_of(p);
        return true;
    }
    const bool entered = slow_enter(); /* as note_mapping */
    bool found = mapping_live(p, live, &is_quarantined);
    if (entered)
        slow_leave();
    return found;
}

bool large_kept(const void *p, struct live *live)
{
    return find_freed(p, live) && live->kind != block_superblock;
}

void large_give_back(void *p)
{
    struct live live;
    if (!find_freed(p, &live))
        return;
    const bool is_mapping = live.kind == block_mapping;
    guard(p, live, false);
    if (is_guarded_whole(live))
        os_guard(p, live.bytes, false);
    else if (mitigated(mitigation_check) && !is_clear(p, live.bytes))
        report_written("free", p);
    const bool entered = slow_enter(); /* as note_mapping */
    if (is_mapping) {
        mapping_note(p, 0, 0, family_malloc, false);
        mapping_give(p);
    } else {
        large_span_give(p);
    }
    if (entered)
        slow_leave();
}

static void release_large(void *p)
{
    struct live live;
    if (marks.sweep == sweep_off)
        large_give_back(p);
    else if (find_freed(p, &live))
        sweep_keep_large(p, live.bytes);
}

/* Not a part of its caller, who sweeps: what it had in registers would still be there. */
NOINLINE bool large_release_all(void)
{
    bool any = false;
    for (unsigned i = 0; i < PLACES; i++) {
        void *p = atomic_exchange(&place[i], NULL);
        if (p != NULL)
            release_large(p);
        any |= p != NULL;
    }
    return any;
}

/* False: by another thread, meanwhile. */
static bool enter_quarantine(void *p, struct live live)
{
    if (live.kind == block_mapping)
        return note_mapping(p, live, true);
    return state_free(p);
}

/* By a handler that interrupted a slow path: what the ring gives back could not be taken.  It goes without
 * quarantine. */
static void free_large_later(void *p, struct live live)
{
    clear_bytes(p, live.bytes);
    guard(p, live, false);
    large_give_later(p);
}

static void free_large(void *p, struct live live)
{
    if (in_slow_path) {
        free_large_later(p, live);
        return;
    }
    const bool entered = slow_enter(); /* as note_mapping */
    filling_forget(p); /* nothing is to be brought to what lies in quarantine */
    if (entered)
        slow_leave();
    clear_large(p, live);
    sweep_note_freed(live.bytes);
    if (!mitigated(mitigation_quarantine)) {
        release_large(p);
        return;
    }
    uint32_t step = 1 + (uint32_t)((uintptr_t)p * marks.order_key >> 63);
    void *old = atomic_exchange(&place[atomic_fetch_add(&at, step) % PLACES], p);
    if (old != NULL)
        release_large(old);
}

void large_unharden(void *p, struct claim claim)
{
    struct live live;
    switch (harden_find(p, &live)) {
    case found_unknown: /* a signal handler in a slow path: the plain library looks at it, later */
        plain_free(p);
        return;
    case found_live:
        break;
    default:
        report_not_live(claim.function, p);
        return;
    }
    harden_check(p, live, claim);
    if (marks.trace != 0)
        trace_free(p, live.size, claim.caller);
    switch (live.kind) {
    case block_superblock: /* beyond a gap of the region */
        if (!state_free(p))
            break;
        clear_block(p, live.bytes);
        harden_release(p);
        return;
    case block_signal_safe:
        if (!state_free(p))
            break;
        clear_block(p, live.bytes);
        plain_free(p);
        return;
    default:
        if (!enter_quarantine(p, live))
            break;
        free_large(p, live);
        return;
    }
    report_double_free(claim.function, p); /* by another thread, since it was looked at */
}
