/* SPDX-License-Identifier: MIT */
#include "heap/huge_price.h"

#include <stdatomic.h>

#include "base/bits.h"
#include "heap/region.h"
#include "os/os.h"

/* Of small pages the lowest price counts, since whatever happens meanwhile makes them seem dearer; it rises slowly. */
#define SAMPLES_MIN 4u
#define RISE_PART 8u
/* A huge page may cost so many times what small ones cost: it is good for more than its first touch. */
#define FAIR_TIMES 2u
/* Of huge pages the mean counts, of about the last so many. */
#define MEAN_OF 4
/* After a dear huge page the next is tried when so many times the time it took has passed; after one that was refused,
 * when this time has. */
#define TRY_TIMES 16u
#define REFUSED_NS 100000000ull

static _Atomic unsigned samples;
static _Atomic uint64_t small_ns; /* of a huge page's bytes in small pages */
static _Atomic uint64_t mean_ns;  /* of a huge page; 0: none was seen, or the last was refused */
static _Atomic uint64_t dear_until_ns;

static uint64_t get(const _Atomic uint64_t *ns)
{
    return atomic_load_explicit(ns, memory_order_relaxed);
}

static void set(_Atomic uint64_t *ns, uint64_t value)
{
    atomic_store_explicit(ns, value, memory_order_relaxed);
}

uint64_t huge_price_clock_us(void)
{
    return os_may_call_luxuries() ? os_thread_cpu_us() : os_now_ns() / 1000;
}

void huge_price_note_small(uint64_t used_us, size_t bytes)
{
    uint64_t seen_ns = used_us * 1000 * (HUGE_PAGE_BYTES / bytes), known_ns = get(&small_ns);
    uint64_t most_ns = known_ns == 0 ? UINT64_MAX : known_ns + known_ns / RISE_PART;
    set(&small_ns, min_size(seen_ns, most_ns));
    atomic_fetch_add_explicit(&samples, 1, memory_order_relaxed);
}

static bool exceeds(uint64_t ns)
{
    return ns > FAIR_TIMES * get(&small_ns);
}

void huge_price_note_huge(uint64_t used_us, uint64_t now_ns)
{
    uint64_t seen_ns = used_us * 1000, before_ns = get(&mean_ns);
    bool begins = before_ns == 0 || exceeds(before_ns); /* one fair page after dear ones says that it is over */
    uint64_t now_mean_ns = begins ? seen_ns : before_ns - before_ns / MEAN_OF + seen_ns / MEAN_OF;
    set(&mean_ns, now_mean_ns);
    set(&dear_until_ns, exceeds(now_mean_ns) ? now_ns + TRY_TIMES * now_mean_ns : 0);
}

void huge_price_note_refused(uint64_t now_ns)
{
    set(&mean_ns, 0);
    set(&dear_until_ns, now_ns + REFUSED_NS);
}

bool huge_price_is_known(void)
{
    return atomic_load_explicit(&samples, memory_order_relaxed) >= SAMPLES_MIN;
}

bool huge_price_is_dear(uint64_t now_ns)
{
    return now_ns < get(&dear_until_ns);
}

bool huge_price_is_fair(uint64_t now_ns)
{
    return huge_price_is_known() && !huge_price_is_dear(now_ns);
}

bool huge_price_is_paid(void)
{
    return get(&mean_ns) != 0;
}
