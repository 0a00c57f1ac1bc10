/* SPDX-License-Identifier: MIT */
#include "heap/span_cache.h"

#include "heap/arena.h"

#include "heap/demand.h"
#include "heap/span.h"
#include "rcs/rcs.h"

#define CACHES 64u

/* {first slice << 16 | WORD_AGED | number of slices}; 0: empty */
#define WORD_AGED 0x8000u
#define WORD_SLICES 0x7fffu

/* The slots of a cid, on cache lines of their own. */
static struct span_cache {
    _Atomic uint64_t x_word[SPAN_CACHE_SLOTS];
    _Atomic uint32_t x_hand; /* which slot makes room next; a hint */
} cache[CACHES] __attribute__((aligned(2 * CACHE_LINE)));
_Static_assert(sizeof cache[0] == 2 * CACHE_LINE, "two lines each");

static size_t slices_of(uint64_t word)
{
    return word & WORD_SLICES;
}

static uint32_t first_of(uint64_t word)
{
    return (uint32_t)(word >> 16);
}

static struct span_cache *cache_here(void)
{
    return &cache[sync_slot_among(CACHES)];
}

/* The slots for spans of one length. */
struct slots {
    _Atomic uint64_t *x_word;
    _Atomic uint32_t *x_hand;
    unsigned count; /* a power of two */
};

static struct slots slots_for(size_t slices)
{
    struct span_cache *c = cache_here();
    unsigned count = slices <= 4 ? 8 : 16u >> top_bit(slices - 1);
    return (struct slots){&c->x_word[16 - 2 * count], &c->x_hand, count};
}

static bool take_word(_Atomic uint64_t *slot, uint64_t word)
{
    return atomic_compare_exchange_strong_explicit(slot, &word, 0, memory_order_acquire, memory_order_relaxed);
}

uint32_t span_cache_take(size_t slices)
{
    if (slices - 1 >= SPAN_CACHE_SLICES_MAX)
        return SLICE_NONE;
    struct slots slots = slots_for(slices);
    for (unsigned i = 0; i < slots.count; i++) {
        uint64_t word = atomic_load_explicit(&slots.x_word[i], memory_order_relaxed);
        if (slices_of(word) == slices && take_word(&slots.x_word[i], word))
            return first_of(word);
    }
    return SLICE_NONE;
}

static bool put_word(_Atomic uint64_t *slot, uint64_t word)
{
    uint64_t nothing = 0;
    return atomic_load_explicit(slot, memory_order_relaxed) == 0 &&
           atomic_compare_exchange_strong_explicit(slot, &nothing, word, memory_order_release, memory_order_relaxed);
}

static uint64_t word_of(uint32_t first, size_t slices)
{
    ASSERT(slice_at(first)->kind == slice_kept);
    return (uint64_t)first << 16 | slices;
}

bool span_cache_put(uint32_t first, size_t slices, bool replaces)
{
    if (slices > SPAN_CACHE_SLICES_MAX || atomic_load_explicit(&memory_is_short, memory_order_relaxed))
        return false;
    struct slots slots = slots_for(slices);
    for (unsigned i = 0; i < slots.count; i++)
        if (put_word(&slots.x_word[i], word_of(first, slices)))
            return true;
    if (!replaces)
        return false;
    uint32_t hand = atomic_load_explicit(slots.x_hand, memory_order_relaxed);
    atomic_store_explicit(slots.x_hand, hand + 1, memory_order_relaxed);
    _Atomic uint64_t *slot = &slots.x_word[hand % slots.count];
    uint64_t old = atomic_exchange_explicit(slot, word_of(first, slices), memory_order_acq_rel);
    if (old != 0)
        span_give_freed(first_of(old), slices_of(old));
    return true;
}

void span_cache_give_back(void)
{
    struct span_cache *c = cache_here();
    for (unsigned i = 0; i < SPAN_CACHE_SLOTS; i++) {
        uint64_t word = atomic_load_explicit(&c->x_word[i], memory_order_relaxed);
        if (word != 0 && take_word(&c->x_word[i], word))
            span_give_block(first_of(word), slices_of(word));
    }
}

static void purge_slot(_Atomic uint64_t *slot, bool all, bool *changed)
{
    uint64_t word = atomic_load_explicit(slot, memory_order_relaxed);
    if (word == 0)
        return;
    if (!all && (word & WORD_AGED) == 0) {
        atomic_compare_exchange_strong_explicit(slot, &word, word | WORD_AGED, memory_order_relaxed,
                                                memory_order_relaxed);
        *changed = true;
    } else if (take_word(slot, word)) {
        span_give_aged(first_of(word), slices_of(word));
    }
}

void span_cache_purge(bool all, bool *changed)
{
    for (unsigned c = 0; c < CACHES; c++)
        for (unsigned i = 0; i < SPAN_CACHE_SLOTS; i++)
            purge_slot(&cache[c].x_word[i], all, changed);
}

size_t span_cache_bytes(void)
{
    size_t slices = 0;
    for (unsigned c = 0; c < CACHES; c++)
        for (unsigned i = 0; i < SPAN_CACHE_SLOTS; i++)
            slices += slices_of(atomic_load_explicit(&cache[c].x_word[i], memory_order_relaxed));
    return slices << SLICE_SHIFT;
}

void span_cache_forget(void)
{
    for (unsigned c = 0; c < CACHES; c++)
        for (unsigned i = 0; i < SPAN_CACHE_SLOTS; i++)
            atomic_store_explicit(&cache[c].x_word[i], 0, memory_order_relaxed);
}

struct span_counts span_counts(void)
{
    struct span_counts copy = span_count;
    size_t kept = min_size(span_cache_bytes(), copy.in_use_bytes);
    copy.in_use_bytes -= kept;
    copy.dirty_bytes += kept;
    copy.opened_bytes = region_opened_bytes();
    return copy;
}
