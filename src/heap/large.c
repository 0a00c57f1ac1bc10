/* SPDX-License-Identifier: MIT */
#include "heap/large.h"

#include "heap/ample.h"
#include "heap/filling.h"
#include "heap/huge.h"
#include "heap/huge_policy.h"
#include "heap/mapping.h"
#include "heap/mapping_cache.h"
#include "heap/mapping_table.h"
#include "heap/span.h"
#include "heap/span_cache.h"
#include "os/hooks.h"
#include "os/os.h"

/* True for a span.  Else the block is a mapping, which the system may put anywhere, even into a gap of the region. */
static bool is_span(const void *p)
{
    return region_contains(p) && slice_at(slice_of(p))->kind == slice_large;
}

/* Asks for huge pages, or no more where that was done for an earlier block: from the first that begins in these slices
 * to the end of the last, so that a block which comes to lie there finds it cleared. */
static void choose_pages(uint32_t first, size_t slices, size_t size)
{
    const uintptr_t address = (uintptr_t)slice_address(first), start = align_up(address, HUGE_PAGE_BYTES),
                    end = align_up(address + (slices << SLICE_SHIFT), HUGE_PAGE_BYTES);
    if (!huge_policy_asks(size)) {
        huge_unask_run((void *)start, end - start);
        return;
    }
    huge_policy_note_asked(slices << SLICE_SHIFT);
    huge_ask_run((void *)start, end - start);
}

static void *span_block_take(size_t size, size_t alignment, bool squeezes, bool *zero)
{
    size_t slices = max_size(1, slices_for(size)); /* zero bytes still have an address of their own */
    size_t align_slices = max_size(1, alignment >> SLICE_SHIFT);
    uint32_t first;
    if (squeezes ? !span_squeeze(slices, align_slices, &first) : !span_take_block(slices, align_slices, &first))
        return NULL;
    struct slice *s = slice_at(first);
    const size_t used = span_used_slices(first, slices);
    *zero = s->was_zero = used == 0;
    s->slices = (uint32_t)slices;
    slice_become(s, slice_large);
    if (used < slices && size >= HUGE_POLICY_BYTES_MIN)
        choose_pages(first + (uint32_t)used, slices - used, size);
    return slice_address(first);
}

/* ---- frees that could not wait ---- */

static _Atomic(void *) deferred; /* linked through the blocks' first word */

void large_give_later(void *p)
{
    void *head = atomic_load(&deferred);
    do
        *(void **)p = head;
    while (!atomic_compare_exchange_weak(&deferred, &head, p));
}

void large_give_deferred(void)
{
    if (likely(atomic_load_explicit(&deferred, memory_order_relaxed) == NULL))
        return;
    void *next;
    for (void *p = atomic_exchange(&deferred, NULL); p != NULL; p = next) {
        next = *(void **)p;
        if (is_span(p))
            large_span_give(p);
        else
            mapping_give(p);
    }
}

void *large_take_kept(size_t size, size_t alignment)
{
    uint32_t first = alignment <= SLICE_BYTES ? span_cache_take(slices_for(size)) : SLICE_NONE;
    if (first == SLICE_NONE)
        return NULL;
    struct slice *s = slice_at(first);
    ASSERT(s->kind == slice_kept && s->slices == slices_for(size));
    slice_become(s, slice_large);
    return slice_address(first);
}

static bool is_for_span(size_t size, size_t alignment)
{
    if (size < MAPPING_BYTES_MIN || alignment >= MAPPING_BYTES_MIN)
        return alignment < MAPPING_BYTES_MIN;
    return size <= SPAN_BYTES_MAX && ample_for(heap_kept_bytes() + size, heap_in_use_bytes());
}

/* Where a span would do but for its alignment, or for want of room, as long as a span: malloc_good_size says so.  (In
 * the hardened library a guard is to be near.) */
static void *map(size_t size, size_t alignment, bool *zero)
{
#ifndef SUTLER_HARDENED
    if (size < MAPPING_BYTES_MIN)
        size = slices_for(size) * SLICE_BYTES;
#endif
    return mapping_take(size, alignment, zero);
}

static void *take(size_t size, size_t alignment, bool as_span, bool *zero)
{
    if (likely(!os_is_hooked()))
        large_give_deferred();
    if (size >= HUGE_POLICY_BYTES_MIN)
        huge_policy_look_back();
    *zero = false;
    void *block = as_span && size >= MAPPING_BYTES_MIN ? mapping_take_kept(size, alignment) : NULL;
    if (block == NULL && as_span)
        span_cache_give_back();
    if (block == NULL)
        block = as_span ? span_block_take(size, alignment, false, zero) : map(size, alignment, zero);
    if (block != NULL && *zero) {
        if (is_span(block)) /* of others mapping.c knows more */
            huge_policy_note(block, size, false);
        filling_note(block, size);
    }
    return block;
}

void *large_take(size_t size, size_t alignment, bool *zero)
{
    return take(size, alignment, is_for_span(size, alignment), zero);
}

void *large_squeeze(size_t size, size_t alignment, bool *zero)
{
    if (size < MAPPING_BYTES_MIN && alignment < MAPPING_BYTES_MIN) {
        void *block = span_block_take(size, alignment, true, zero);
        return block != NULL ? block : map(size, alignment, zero); /* the region may be full */
    }
    void *block = map(size, alignment, zero);
    if (block == NULL && large_may_lie_free(size) && alignment <= region_opened_bytes())
        block = span_block_take(size, alignment, true, zero);
    return block;
}

bool large_may_lie_free(size_t size)
{
    return size < MAPPING_BYTES_MIN || size <= region_opened_bytes();
}

size_t large_span_bytes(const void *p)
{
    return (size_t)slice_at(slice_of(p))->slices << SLICE_SHIFT;
}

/* Before a block of so many bytes is given back or resized; whether it was watched (filling.h), which short ones are
 * not. */
static bool forget(void *p, size_t bytes)
{
    return bytes >= FILLING_BYTES_MIN && filling_forget(p);
}

/* False if another thread frees it, too. */
static bool free_once(struct slice *s)
{
    uint8_t seen = slice_large;
    return __atomic_compare_exchange_n(&s->kind, &seen, slice_kept, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

/* A block that was zero when taken is not kept: large_span_give is to look how full it was. */
bool large_span_keep(void *p)
{
    uint32_t first = slice_of(p);
    struct slice *s = slice_at(first);
    if (s->was_zero || s->slices > SPAN_CACHE_SLICES_MAX || !free_once(s))
        return false;
    if (likely(span_cache_put(first, s->slices, false)))
        return true;
    slice_become(s, slice_large);
    return false;
}

bool large_span_give(void *p)
{
    uint32_t first = slice_of(p);
    struct slice *s = slice_at(first);
    size_t slices = s->slices;
    if (!free_once(s))
        return false;
    forget(p, slices << SLICE_SHIFT);
    if (s->was_zero) {
        huge_policy_look(p, slices << SLICE_SHIFT, SLICE_BYTES, false);
        s->was_zero = false;
    }
    if (!span_cache_put(first, slices, true) && !span_give_if_crowded(first, slices))
        span_give_block(first, slices);
    return true;
}

void *large_take_mapping(size_t size)
{
    ASSERT(size >= GROWN_BYTES_MIN);
    return take(size, BLOCK_ALIGNMENT, false, &(bool){false});
}

/* Nor where huge pages would be broken. */
void *large_move_out(void *p, size_t size)
{
    const uint32_t first = slice_of(p);
    struct slice *s = slice_at(first);
    const size_t slices = s->slices;
    large_give_deferred();
    if (os_makes_all_pages_huge() || huge_is_asked_for(p, slices << SLICE_SHIFT) || mapping_is_kept(size) ||
        !free_once(s))
        return NULL;
    const bool was_watched = forget(p, slices << SLICE_SHIFT);
    if (s->was_zero)
        huge_policy_look(p, slices << SLICE_SHIFT, SLICE_BYTES, false);
    void *mapping = mapping_take_pages(p, slices << SLICE_SHIFT, size, s->was_zero);
    if (mapping == NULL)
        slice_become(s, slice_large);
    else
        span_give_empty(first, slices);
    if (was_watched)
        filling_go_on(mapping != NULL ? mapping : p, mapping != NULL ? size : slices << SLICE_SHIFT);
    return mapping;
}

static void *span_block_resize(void *p, size_t size, bool squeezes)
{
    uint32_t first = slice_of(p);
    struct slice *s = slice_at(first);
    size_t have = s->slices, wanted = slices_for(size);
    if (wanted > have && size >= MAPPING_BYTES_MIN && !squeezes)
        return NULL; /* it moves to a mapping now: a later growth would copy even more */
    if (wanted > have) {
        uint32_t end = first + (uint32_t)have;
        if (squeezes ? !span_extend_squeezed(end, wanted - have) : !span_extend(end, wanted - have))
            return NULL;
        if (!span_is_zero(end, wanted - have))
            s->was_zero = false;
    }
    /* Before the rest is given: a child of a fork in between finds it as an orphan. */
    s->slices = (uint32_t)wanted;
    if (wanted < have)
        span_give_freed(first + (uint32_t)wanted, have - wanted);
    return p;
}

void *large_resize(void *p, size_t size, bool squeezes)
{
    const bool was_watched = forget(p, is_span(p) ? large_span_bytes(p) : MAPPING_BYTES_MIN);
    void *resized = is_span(p) ? span_block_resize(p, size, squeezes) : mapping_resize(p, size);
    if (was_watched && resized != NULL) /* else it is about to be copied and freed */
        filling_go_on(resized, size);
    return resized;
}

struct large_counts large_counts(void)
{
    struct large_counts counts = {.mapping_blocks = mapping_table_count(), .mapping_bytes = mapping_table_bytes()};
    size_t slices;
    counts.blocks = counts.mapping_blocks;
    counts.bytes = counts.mapping_bytes;
    counts.cached_bytes = mapping_cache_bytes();
    for (uint32_t at = region_slice_from(0); at != SLICE_END; at = region_slice_from(at + (uint32_t)slices)) {
        slices = span_passed(at);
        if (slice_at(at)->kind == slice_large) {
            counts.blocks++;
            counts.bytes += slices << SLICE_SHIFT;
        }
    }
    return counts;
}

size_t heap_kept_bytes(void)
{
    return span_dirty_bytes() + mapping_cache_bytes();
}

size_t heap_in_use_bytes(void)
{
    return span_in_use_bytes() + mapping_table_bytes();
}
