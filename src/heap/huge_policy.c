/* SPDX-License-Identifier: MIT */
#include "heap/huge_policy.h"

#include <stdatomic.h>

#include "base/bits.h"
#include "heap/huge.h"
#include "heap/huge_price.h"
#include "heap/region.h"
#include "options/options.h"
#include "os/os.h"

#define LOOKS 4u
/* For a block seen full huge pages are asked for others of so many times its bytes, and of so many at least; but of no
 * more than this altogether, or than two such blocks. */
#define TRUST_TIMES 8u
#define TRUST_MIN ((size_t)8 << 20)
#define TRUST_MAX ((size_t)128 << 20)

/* Huge pages may be asked for so many bytes before another block is seen full: blocks that are kept, and never filled,
 * tell nothing.  Of what two threads note at once one may be lost. */
static _Atomic size_t trusted;

/* The last fresh block, NULL once it was freed.  If two threads note one at once, the address of one block may stand
 * beside the length of the other: then the wrong pages are looked at. */
static _Atomic(const char *) last;
static _Atomic size_t last_bytes;
static _Atomic bool last_was_asked;

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

static size_t get_trusted(void)
{
    return atomic_load_explicit(&trusted, memory_order_relaxed);
}

static void set_trusted(size_t bytes)
{
    atomic_store_explicit(&trusted, bytes, memory_order_relaxed);
}

static bool lies_on_huge_pages(const char *block, size_t bytes)
{
    unsigned huge = 0;
    for (size_t i = LOOKS; i > 0; i--)
        huge += huge_is_asked_for(block + bytes / LOOKS * i - 1, 1);
    return huge > LOOKS / 2;
}

static bool is_zero(const uint64_t *line)
{
    uint64_t any = 0;
    for (size_t i = 0; i < OS_PEEK_BYTES / sizeof *line; i++)
        any |= line[i];
    return any == 0;
}

/* On huge pages few touches make all quarters look full.  What stands in it tells more: how its pages begin, one
 * anywhere in each part, so that it is at no distance a program would choose. */
static bool holds_data(const char *block, size_t bytes)
{
    const char *page[OS_PEEKS_MAX];
    uint64_t line[OS_PEEKS_MAX][OS_PEEK_BYTES / sizeof(uint64_t)];
    const size_t part = bytes / OS_PEEKS_MAX;
    uint64_t hash = (uintptr_t)block / OS_PAGE_BYTES_MIN;
    for (size_t i = 0; i < OS_PEEKS_MAX; i++) {
        hash = hash * 0x9e3779b97f4a7c15ull + 1;
        page[i] = block + align_down(part * i + (hash >> 32) % part, os_page_bytes);
    }
    if (!os_peek((char *)line, page, OS_PEEKS_MAX))
        return false;
    unsigned with_data = 0;
    for (size_t i = 0; i < OS_PEEKS_MAX; i++)
        with_data += !is_zero(line[i]);
    return with_data >= OS_PEEKS_MAX / 4 * 3;
}

/* Whether one that is there at all quarters was filled. */
static bool was_filled(const char *block, size_t bytes, bool was_asked)
{
    return !(was_asked || lies_on_huge_pages(block, bytes)) || holds_data(block, bytes);
}

void huge_policy_note_filled(size_t bytes)
{
    const size_t before = get_trusted(), now = before + max_size(TRUST_TIMES * bytes, TRUST_MIN);
    set_trusted(max_size(before, min_size(now, max_size(TRUST_MAX, 2 * bytes))));
}

void huge_policy_note_there(const void *block, size_t bytes)
{
    if (holds_data(block, bytes))
        huge_policy_note_filled(bytes);
}

void huge_policy_note_asked(size_t bytes)
{
    const size_t before = get_trusted();
    set_trusted(before - min_size(bytes, before));
}

void huge_policy_look_back(void)
{
    const char *block = atomic_exchange_explicit(&last, NULL, memory_order_relaxed);
    const size_t bytes = atomic_load_explicit(&last_bytes, memory_order_relaxed);
    const bool was_asked = atomic_load_explicit(&last_was_asked, memory_order_relaxed);
    if (block != NULL && is_full(block, bytes, 1) && was_filled(block, bytes, was_asked))
        huge_policy_note_filled(bytes);
}

void huge_policy_note(const void *block, size_t bytes, bool was_asked)
{
    if (!huge_policy_tells(bytes))
        return;
    atomic_store_explicit(&last_bytes, bytes, memory_order_relaxed);
    atomic_store_explicit(&last_was_asked, was_asked, memory_order_relaxed);
    atomic_store_explicit(&last, block, memory_order_relaxed);
}

void huge_policy_look(const void *block, size_t bytes, size_t slack, bool was_asked)
{
    const char *seen = block;
    atomic_compare_exchange_strong_explicit(&last, &seen, NULL, memory_order_relaxed, memory_order_relaxed);
    if (!huge_policy_tells(bytes))
        return;
    if (!is_full(block, bytes, slack))
        set_trusted(0);
    else if (was_filled(block, bytes, was_asked))
        huge_policy_note_filled(bytes);
}

static bool is_always(void)
{
    return option_get(option_huge_pages) == huge_pages_on;
}

bool huge_policy_expects_full(size_t bytes)
{
    if (is_always())
        return bytes >= HUGE_POLICY_BYTES_MIN;
    return huge_policy_tells(bytes) && get_trusted() >= bytes;
}

bool huge_policy_asks(size_t bytes)
{
    return huge_policy_expects_full(bytes) && (is_always() || !huge_price_is_dear(os_now_ns()));
}
