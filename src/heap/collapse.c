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
/* Between two rounds: the longer, the longer none found a page that was ready. */
#define ROUND_NS_MIN 50000000ull
#define ROUND_NS_MAX 1600000000ull
/* After a page nothing is done for so many times what it took. */
#define REST_TIMES 16u
#define REFUSED_NS 1000000000ull

static struct {
    uint32_t at;       /* the next slice */
    bool has_found;    /* one that may be ready in the next round */
    bool has_collapsed;
    bool goes_on;      /* what the last round said */
    uint64_t pause_ns; /* after it */
    uint64_t due_ns;   /* nothing before that */
} rounds = {.pause_ns = ROUND_NS_MIN};

static _Atomic size_t collapsed_bytes;

static bool end_round(uint64_t now_ns)
{
    rounds.pause_ns = rounds.has_collapsed ? ROUND_NS_MIN : min_size(rounds.pause_ns * 2, ROUND_NS_MAX);
    rounds.due_ns = max_size(rounds.due_ns, now_ns + rounds.pause_ns);
    rounds.goes_on = rounds.has_found;
    rounds.at = 0;
    rounds.has_found = rounds.has_collapsed = false;
    return rounds.goes_on;
}

static bool is_wanted(uint64_t now_ns)
{
    return option_get(option_huge_pages) == huge_pages_auto && region_fits_huge_pages() &&
           huge_price_is_paid() && huge_price_is_fair(now_ns);
}

static void collapse(uint32_t first)
{
    uint64_t start_ns = os_now_ns();
    bool is_huge = huge_collapse(first);
    uint64_t end_ns = os_now_ns();
    rounds.due_ns = end_ns + (is_huge ? REST_TIMES * (end_ns - start_ns) : REFUSED_NS);
    rounds.has_collapsed |= is_huge;
    if (is_huge)
        atomic_fetch_add_explicit(&collapsed_bytes, HUGE_PAGE_BYTES, memory_order_relaxed);
}

/* True if it has been full for long enough. */
static bool is_ready(uint32_t first)
{
    const bool is_full = huge_is_in_use(first) && huge_is_full(slice_address(first));
    rounds.has_found |= is_full;
    return huge_note_look(first, is_full);
}

bool collapse_next(uint64_t now_ns)
{
    if (now_ns < rounds.due_ns)
        return rounds.goes_on || rounds.at != 0;
    if (!is_wanted(now_ns))
        return false;
    for (unsigned visits = 0, looks = 0; visits < VISITS_MAX && looks < LOOKS_MAX; visits++) {
        const uint32_t first = region_slice_from(rounds.at);
        if (first == SLICE_END)
            return end_round(now_ns);
        rounds.at = first + HUGE_PAGE_SLICES;
        if (!huge_may_collapse(first))
            continue;
        looks++;
        if (is_ready(first)) {
            collapse(first);
            break;
        }
    }
    return true;
}

size_t collapse_bytes(void)
{
    return atomic_load_explicit(&collapsed_bytes, memory_order_relaxed);
}
