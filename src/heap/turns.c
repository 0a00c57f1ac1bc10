/* SPDX-License-Identifier: MIT */
#include "heap/turns.h"

#include <stdatomic.h>

#include "base/bits.h"
#include "heap/size_class.h"
#include "heap/span.h"

/* Soon is after few turns of other classes, or before half as much has been wanted as is in use.  A class is spared
 * until so many times as much has been wanted as was in use. */
#define FEW_TURNS    4u
#define SPARED_TIMES 16u

static _Atomic uint32_t wanted_slices, turns, last_wanted; /* turns: how often it was another class than before */
static struct {
    _Atomic uint32_t lent_at; /* of wanted_slices; 0: never, or it has wanted memory since */
    _Atomic uint32_t lent_in_turn;
    _Atomic uint32_t spared_until; /* of wanted_slices; 0: never */
} class[CLASS_COUNT];

static uint32_t count(_Atomic uint32_t *counter, uint32_t more)
{
    const uint32_t now = atomic_load_explicit(counter, memory_order_relaxed) + more;
    atomic_store_explicit(counter, now, memory_order_relaxed);
    return now;
}

void turns_note_lent(unsigned c)
{
    atomic_store_explicit(&class[c].lent_in_turn, atomic_load(&turns), memory_order_relaxed);
    atomic_store_explicit(&class[c].lent_at, (uint32_t)max_size(1, atomic_load(&wanted_slices)), memory_order_relaxed);
}

void turns_note_wanted(unsigned c, size_t slices)
{
    const uint32_t now = count(&wanted_slices, (uint32_t)slices);
    const uint32_t turn = count(&turns, atomic_exchange_explicit(&last_wanted, c, memory_order_relaxed) != c);
    const uint32_t lent_at = atomic_exchange_explicit(&class[c].lent_at, 0, memory_order_relaxed);
    const uint32_t in_use = (uint32_t)(span_in_use_bytes() >> SLICE_SHIFT);
    const bool is_soon = now - lent_at < in_use / 2 || turn - atomic_load(&class[c].lent_in_turn) < FEW_TURNS;
    if (lent_at != 0 && is_soon)
        atomic_store_explicit(&class[c].spared_until, now + SPARED_TIMES * in_use, memory_order_relaxed);
}

bool turns_are_taken_by(unsigned c)
{
    const uint32_t until = atomic_load_explicit(&class[c].spared_until, memory_order_relaxed);
    return until != 0 && (int32_t)(until - atomic_load_explicit(&wanted_slices, memory_order_relaxed)) > 0;
}
