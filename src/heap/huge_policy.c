/* SPDX-License-Identifier: MIT */
#include "heap/huge_policy.h"

#include <stdatomic.h>

#include "heap/huge_price.h"
#include "heap/region.h"
#include "options/options.h"
#include "os/os.h"

#define LOOKS 4u

static _Atomic bool fills;

/* The last fresh block, NULL once it was freed.  If two threads note one at once, the address of one block may stand
 * beside the length of the other: then the wrong pages are looked at. */
static _Atomic(const char *) last;
static _Atomic size_t last_bytes;

/* Looks where the quarters end. */
static bool is_full(const char *block, size_t bytes, size_t slack)
{
    for (size_t i = LOOKS; i > 0; i--)
        if (!os_is_resident(block + bytes / LOOKS * i - slack))
            return false;
    return true;
}

bool huge_policy_tells(size_t bytes)
{
    return bytes >= HUGE_POLICY_BYTES_MIN && option_get(option_huge_pages) == huge_pages_auto &&
           region_fits_huge_pages();
}

void huge_policy_look_back(void)
{
    if (atomic_load_explicit(&fills, memory_order_relaxed))
        return;
    const char *block = atomic_exchange_explicit(&last, NULL, memory_order_relaxed);
    if (block != NULL && is_full(block, atomic_load_explicit(&last_bytes, memory_order_relaxed), 1))
        atomic_store_explicit(&fills, true, memory_order_relaxed);
}

void huge_policy_note(const void *block, size_t bytes)
{
    if (!huge_policy_tells(bytes))
        return;
    atomic_store_explicit(&last_bytes, bytes, memory_order_relaxed);
    atomic_store_explicit(&last, block, memory_order_relaxed);
}

void huge_policy_look(const void *block, size_t bytes, size_t slack)
{
    const char *seen = block;
    atomic_compare_exchange_strong_explicit(&last, &seen, NULL, memory_order_relaxed, memory_order_relaxed);
    if (huge_policy_tells(bytes))
        atomic_store_explicit(&fills, is_full(block, bytes, slack), memory_order_relaxed);
}

void huge_policy_note_filled(void)
{
    atomic_store_explicit(&fills, true, memory_order_relaxed);
}

static bool is_always(void)
{
    return option_get(option_huge_pages) == huge_pages_on;
}

bool huge_policy_expects_full(size_t bytes)
{
    if (is_always())
        return bytes >= HUGE_POLICY_BYTES_MIN;
    return huge_policy_tells(bytes) && atomic_load_explicit(&fills, memory_order_relaxed);
}

bool huge_policy_asks(size_t bytes)
{
    return huge_policy_expects_full(bytes) && (is_always() || !huge_price_is_dear(os_now_ns()));
}
