/* SPDX-License-Identifier: MIT */
#include "heap/collapse.h"

#include <stdatomic.h>

#include "base/bits.h"
#include "heap/huge.h"
#include "heap/huge_price.h"
#include "heap/region.h"
#include "options/options.h"
#include "os/os.h"

/* In one call: pages of which the first slice's descriptor is looked at, and such as all are, and perhaps the system is
 * asked. */
#define VISITS_MAX 1024u
#define LOOKS_MAX  32u
/* Between two calls in a round; and between two rounds: the longer, the longer none found a page that was ready. */
#define CALL_NS 20000000ull
#define ROUND_NS_MIN 50000000ull
#define ROUND_NS_MAX 1600000000ull
/* After a page nothing is done for so many times what it took; more, if that was long. */
#define REST_TIMES 16u
#define LONG_NS 4000000ull
#define REST_TIMES_LONG 256u
#define REST_NS_MAX 10000000000ull /* the process may have been stopped meanwhile */

static struct {
    uint32_t at;    /* the next slice */
    bool has_found; /* one that may be ready in the next round */
    bool has_collapsed;
    bool is_over;      /* the last one found none */
    uint64_t pause_ns; /* after the last one */
    uint64_t due_ns;   /* nothing before that */
    long pagemap;      /* open while a round needs it; else negative */
} rounds = {.pause_ns = ROUND_NS_MIN, .pagemap = -1};

static _Atomic size_t collapsed_bytes;

static uint64_t end_round(uint64_t now_ns)
{
    const bool has_found = rounds.has_found;
    rounds.pause_ns = rounds.has_collapsed ? ROUND_NS_MIN : min_size(rounds.pause_ns * 2, ROUND_NS_MAX);
    rounds.due_ns = now_ns + rounds.pause_ns;
    rounds.at = 0;
    if (rounds.pagemap >= 0)
        os_pagemap_close(rounds.pagemap);
    rounds.pagemap = -1;
    rounds.is_over = !has_found;
    rounds.has_found = rounds.has_collapsed = false;
    return has_found ? rounds.pause_ns : 0;
}

bool collapse_is_wanted(uint64_t now_ns)
{
    return option_get(option_huge_pages) == huge_pages_auto && region_fits_huge_pages() && huge_price_is_paid() &&
           huge_price_is_fair(now_ns) && os_may_collapse();
}

static uint64_t collapse(uint32_t first)
{
    uint64_t start_ns = os_now_ns();
    if (rounds.pagemap < 0)
        rounds.pagemap = os_pagemap_open();
    enum huge_collapsed what = huge_collapse(first, rounds.pagemap);
    uint64_t end_ns = os_now_ns(), took_ns = end_ns - start_ns;
    if (what == huge_has_none)
        huge_price_note_refused(end_ns);
    if (what == huge_is_made)
        atomic_fetch_add_explicit(&collapsed_bytes, HUGE_PAGE_BYTES, memory_order_relaxed);
    rounds.has_collapsed |= what == huge_is_made;
    uint64_t rest_ns = min_size(took_ns * (took_ns > LONG_NS ? REST_TIMES_LONG : REST_TIMES), REST_NS_MAX);
    rounds.due_ns = end_ns + rest_ns;
    return max_size(rest_ns, CALL_NS);
}

/* True if it has been full for long enough. */
static bool is_ready(uint32_t first)
{
    const bool is_full = huge_is_in_use(first) && huge_is_full(slice_address(first));
    rounds.has_found |= is_full;
    return huge_note_look(first, is_full);
}

uint64_t collapse_next(uint64_t now_ns)
{
    if (!collapse_is_wanted(now_ns))
        return 0;
    if (now_ns < rounds.due_ns)
        return rounds.is_over ? 0 : rounds.due_ns - now_ns;
    rounds.is_over = false;
    for (unsigned visits = 0, looks = 0; visits < VISITS_MAX && looks < LOOKS_MAX; visits++) {
        const uint32_t first = region_slice_from(rounds.at);
        if (first == SLICE_END)
            return end_round(now_ns);
        rounds.at = first + HUGE_PAGE_SLICES;
        if (!huge_may_collapse(first))
            continue;
        looks++;
        if (is_ready(first))
            return collapse(first);
    }
    return CALL_NS;
}

void collapse_start(void)
{
    rounds.pagemap = -1;
}

size_t collapse_bytes(void)
{
    return atomic_load_explicit(&collapsed_bytes, memory_order_relaxed);
}
