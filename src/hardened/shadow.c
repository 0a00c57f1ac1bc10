/* SPDX-License-Identifier: MIT */
#include "hardened/shadow.h"

#include <stdatomic.h>

#include "hardened/own.h"
#include "os/os.h"

#define BIT_SHIFT STATE_SHIFT
#define WORD_SHIFT (BIT_SHIFT + 6)
#define OUTSIDE_MAX 512u
#define CHUNK       256u

struct shadow shadow;
static size_t words_bytes; /* mapped, of each marker */

static struct {
    uintptr_t start;
    size_t bytes;
    _Atomic bool is_marked;
} outside[OUTSIDE_MAX];
static unsigned outside_count;

/* A quarter more than is wanted, for the region grows, and when a limit has been reached so can this not; and twice as
 * long as the last, for what is left behind are addresses without pages. */
static bool grow(size_t wanted)
{
    const size_t bytes = max_size(align_up(wanted + wanted / 4, os_page_bytes), 2 * words_bytes);
    uint64_t *made = own_map(MARKERS * bytes);
    if (made == NULL)
        return false;
    for (unsigned by = 0; by < MARKERS; by++)
        shadow.words[by] = made + by * bytes / sizeof *made;
    words_bytes = bytes;
    return true;
}

bool shadow_prepare(void)
{
    const size_t covered = (size_t)region_end() << SLICE_SHIFT;
    shadow.base = hot.region_base;
    if (covered >> (BIT_SHIFT + 3) > words_bytes && !grow(covered >> (BIT_SHIFT + 3)) && words_bytes == 0)
        return false;
    shadow.bytes = min_size(covered, words_bytes << (BIT_SHIFT + 3));
    outside_count = 0;
    shadow.outside_bytes = 0;
    return true;
}

void shadow_wipe(void)
{
    if (shadow.bytes != 0)
        os_wipe(shadow.words[0], MARKERS * words_bytes);
    shadow.bytes = 0;
}

void shadow_add_outside(uintptr_t start, size_t bytes)
{
    if (outside_count == OUTSIDE_MAX)
        return;
    outside[outside_count].start = start;
    outside[outside_count].bytes = bytes;
    atomic_store(&outside[outside_count++].is_marked, false);
    uintptr_t end = start + bytes;
    if (shadow.outside_bytes != 0) {
        end = max_size(end, shadow.outside_start + shadow.outside_bytes);
        start = min_size(start, shadow.outside_start);
    }
    shadow.outside_start = start;
    shadow.outside_bytes = end - start;
}

static NOINLINE void mark_outside(uintptr_t word)
{
    for (unsigned i = 0; i < outside_count; i++)
        if (word - outside[i].start < outside[i].bytes)
            atomic_store(&outside[i].is_marked, true);
}

/* Of up to CHUNK words, the offsets of those that lie in the range; returns how many.  No branch: which ones do cannot
 * be foreseen. */
static inline size_t find_in(const uint64_t *word, size_t count, uintptr_t start, size_t bytes, uint64_t *offset)
{
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        offset[found] = word[i] - start;
        found += offset[found] < bytes;
    }
    return found;
}

static uint64_t found_at[MARKERS][CHUNK]; /* on the stack, it would leave alone what earlier calls have left there */

static inline void mark_in_region(enum marker by, const uint64_t *word, size_t count)
{
    uint64_t *const words = shadow.words[by], *const offset = found_at[by];
    const size_t found = find_in(word, count, shadow.base, shadow.bytes, offset);
    for (size_t i = 0; i < found; i++)
        words[offset[i] >> WORD_SHIFT] |= 1ull << (offset[i] >> BIT_SHIFT & 63);
}

static NOINLINE void mark_beyond(enum marker by, const uint64_t *word, size_t count)
{
    const size_t found = find_in(word, count, shadow.outside_start, shadow.outside_bytes, found_at[by]);
    for (size_t i = 0; i < found; i++)
        mark_outside(shadow.outside_start + found_at[by][i]);
}

void shadow_mark_words(enum marker by, const uint64_t *word, size_t count)
{
    for (size_t i = 0; i < count; i += CHUNK) {
        for (size_t at = i + CHUNK; at < min_size(i + 2 * CHUNK, count); at += LINE_BYTES / sizeof *word)
            __builtin_prefetch(word + at); /* the processor does so by itself, but not beyond a page's end */
        mark_in_region(by, word + i, min_size(count - i, CHUNK));
        if (unlikely(shadow.outside_bytes != 0))
            mark_beyond(by, word + i, min_size(count - i, CHUNK));
    }
}

static bool is_outside_clear(uintptr_t start)
{
    for (unsigned i = 0; i < outside_count; i++)
        if (outside[i].start == start)
            return !atomic_load(&outside[i].is_marked);
    return false;
}

static bool is_clear_of(const uint64_t *words, uint64_t first, uint64_t last)
{
    const uint64_t from_first = ~0ull << (first & 63), to_last = ~0ull >> (63 - (last & 63));
    if (first / 64 == last / 64)
        return (words[first / 64] & from_first & to_last) == 0;
    uint64_t seen = (words[first / 64] & from_first) | (words[last / 64] & to_last);
    for (size_t i = first / 64 + 1; i < last / 64 && seen == 0; i++)
        seen = words[i];
    return seen == 0;
}

bool shadow_is_clear(const void *p, size_t bytes)
{
    const uint64_t offset = (uintptr_t)p - shadow.base, first = offset >> BIT_SHIFT,
                   last = (offset + bytes - 1) >> BIT_SHIFT;
    if (!region_contains(p))
        return is_outside_clear((uintptr_t)p);
    bool clear = offset + bytes <= shadow.bytes;
    for (unsigned by = 0; by < MARKERS && clear; by++)
        clear = is_clear_of(shadow.words[by], first, last);
    return clear;
}
