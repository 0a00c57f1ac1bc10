/* SPDX-License-Identifier: MIT */
#include "heap/mapping_cache.h"

#include "base/bits.h"
#include "heap/allowance.h"
#include "heap/ample.h"
#include "heap/demand.h"
#include "heap/large.h"
#include "heap/mapping_table.h"
#include "heap/pass.h"
#include "heap/span.h"
#include "os/hooks.h"
#include "os/lock.h"
#include "os/os.h"

#define CACHE_MAX 16

/* Unused if its address is 0. */
static struct kept {
    struct mapping mapping;
    bool aged;     /* there at the last mapping_purge */
    bool deferred; /* to be unmapped as soon as may be */
    bool dontfork; /* no forked child has it */
} cache[CACHE_MAX];
static size_t cached_bytes;
/* The most that was in use at a time, when a mapping was freed: since the manager's clock came by last, and before. */
static size_t peak_bytes, peak_before;

static bool has_room(size_t bytes, bool wanted)
{
    if (!wanted && !atomic_load(&unmap_is_async))
        return false;
    size_t most = atomic_load(&unmap_is_async) ? MAPPING_DEFERRED_BYTES : MAPPING_CACHE_BYTES;
    return cached_bytes + bytes <= most;
}

static size_t in_use_bytes(void)
{
    return span_in_use_bytes() + mapping_table_bytes();
}

static bool is_ample(size_t bytes)
{
    return ample_for(cached_bytes + bytes + span_dirty_bytes(), in_use_bytes());
}

/* Where memory is ample as much is kept as is in use, this one among it, or as makes up for what was in use lately. */
static bool is_too_much(size_t bytes)
{
    const size_t kept = cached_bytes + bytes, in_use = in_use_bytes(), peak = max_size(peak_bytes, peak_before);
    const size_t most = max_size(in_use + bytes, peak - min_size(peak, in_use));
    return kept > MAPPING_CACHE_BYTES && (kept > min_size(most, MAPPING_AMPLE_BYTES) || !is_ample(bytes));
}

bool mapping_cache_prepare(uintptr_t address, size_t bytes, bool wanted)
{
    return has_room(bytes, wanted) && (!wanted || is_ample(bytes) || os_give_up((void *)address, bytes));
}

/* The first bytes of a kept one; the rest stays.  Address 0 if the system refuses it. */
static struct mapping take_from(struct kept *k, size_t bytes)
{
    const struct mapping found = k->mapping;
    /* Children get it when it is out of the cache: one that is made meanwhile does not know of it. */
    mapping_set(&k->mapping, 0, 0);
    if (unlikely(k->dontfork && !os_keep_from_children((void *)found.address, bytes, false))) {
        mapping_set(&k->mapping, found.address, found.bytes);
        return (struct mapping){0};
    }
    cached_bytes -= bytes;
    allowance_return(bytes);
    if (bytes < found.bytes)
        mapping_set(&k->mapping, found.address + bytes, found.bytes - bytes);
    return (struct mapping){found.address, bytes, .is_several = found.is_several};
}

/* The shortest that is long enough; else, if it may be lengthened, the longest of at least half the length; or NULL. */
static struct kept *find(size_t bytes, size_t alignment)
{
    const bool may_lengthen = alignment <= os_page_bytes && bytes >= MAPPING_BYTES_MIN && !os_is_hooked();
    struct kept *best = NULL;
    for (struct kept *k = cache; k < cache + CACHE_MAX; k++) {
        const size_t have = k->mapping.bytes, most = best != NULL ? best->mapping.bytes : 0;
        if (k->mapping.address == 0 || (k->mapping.address & (alignment - 1)) != 0 ||
            have < (may_lengthen ? bytes / 2 : bytes))
            continue;
        if (best == NULL || (have < bytes ? have > most : have < most || most < bytes))
            best = k;
    }
    return best;
}

bool mapping_cache_serves(size_t bytes, size_t alignment)
{
    ASSERT(lock_is_mine(&mapping_lock));
    const struct kept *k = find(bytes, alignment);
    return k != NULL && (k->mapping.bytes >= bytes || !k->mapping.is_several);
}

struct mapping mapping_cache_take(size_t bytes, size_t alignment)
{
    ASSERT(lock_is_mine(&mapping_lock));
    struct kept *k = find(bytes, alignment);
    if (k == NULL)
        return (struct mapping){0};
    const size_t have = k->mapping.bytes,
                 part = bytes < MAPPING_BYTES_MIN ? bytes : align_up(bytes, HUGE_PAGE_BYTES);
    if (have < bytes && k->mapping.is_several) { /* it makes room for the longer one that is mapped now */
        if (atomic_load(&unmap_is_async)) {
            k->deferred = true;
            demand_raise();
        }
        return (struct mapping){0};
    }
    return take_from(k, have <= bytes + bytes / 4 ? have : part);
}

bool mapping_cache_take_at(uintptr_t address, size_t bytes)
{
    ASSERT(lock_is_mine(&mapping_lock));
    for (struct kept *k = cache; k < cache + CACHE_MAX; k++)
        if (k->mapping.address == address && address != 0)
            return k->mapping.bytes >= bytes && take_from(k, bytes).address != 0;
    return false;
}

/* Whether it lies beside this one and may be a part of it: if it is not to go, and was taken or given since the clock
 * came by.  So of what is kept only as much stays as is used. */
static bool is_beside(const struct kept *k, struct mapping m)
{
    return k->mapping.address != 0 && !k->aged && !k->deferred &&
           (k->mapping.address + k->mapping.bytes == m.address || m.address + m.bytes == k->mapping.address);
}

/* What was cut in two, or mapped side by side, is one again, for a longer block: the kept ones beside this one are
 * taken out of the cache and become a part of it. */
static void join(struct kept *given)
{
    for (struct kept *k = cache; k < cache + CACHE_MAX; k++) {
        const struct mapping beside = k->mapping, m = given->mapping;
        if (!is_beside(k, m))
            continue;
        mapping_set(&k->mapping, 0, 0);
        given->dontfork |= k->dontfork;
        given->mapping = (struct mapping){
            min_size(beside.address, m.address),
            beside.bytes + m.bytes,
            .is_several = true,
        };
    }
}

static struct kept *find_unused(void)
{
    for (struct kept *k = cache; k < cache + CACHE_MAX; k++)
        if (k->mapping.address == 0)
            return k;
    return NULL;
}

/* Into an unused place; its address last. */
static void put(struct kept *k, struct kept entry)
{
    const struct mapping m = entry.mapping;
    entry.mapping.address = 0;
    *k = entry;
    mapping_set(&k->mapping, m.address, m.bytes);
}

bool mapping_cache_give(struct mapping m, bool wanted)
{
    ASSERT(lock_is_mine(&mapping_lock));
    peak_bytes = max_size(peak_bytes, in_use_bytes() + m.bytes);
    if (!has_room(m.bytes, wanted))
        return false;
    struct kept given = {.mapping = {m.address, m.bytes, .is_several = m.is_several},
                         .deferred = !wanted || is_too_much(m.bytes)};
    /* No child is to copy the page tables of what it will unmap, nor to hold what is much. */
    given.dontfork = given.deferred || cached_bytes + m.bytes > MAPPING_CACHE_BYTES;
    if (!given.deferred && is_ample(m.bytes))
        join(&given);
    struct kept *k = find_unused();
    if (k == NULL)
        return false;
    void *whole = (void *)given.mapping.address;
    if (given.dontfork) /* it counts so if the system refuses: it may have done so for a part */
        os_keep_from_children(whole, given.mapping.bytes, true);
    given.mapping.is_several = given.mapping.is_several && !os_is_one_mapping(whole, given.mapping.bytes);
    put(k, given);
    cached_bytes += m.bytes;
    allowance_use(m.bytes);
    if (given.deferred)
        demand_raise();
    return true;
}

/* Unmaps what is deferred, in pieces off the end: the program's own mmap waits for as long as one takes, a fork or
 * another purge comes in between, and the rest may be had again.  No more than was there at the beginning. */
size_t mapping_unmap_deferred(size_t most)
{
    const size_t piece_max = 8ul << 20;
    size_t done = 0, deferred = 0;
    lock_take(&mapping_lock);
    for (const struct kept *k = cache; k < cache + CACHE_MAX; k++)
        deferred += k->mapping.address != 0 && k->deferred ? k->mapping.bytes : 0;
    for (struct kept *k = cache; k < cache + CACHE_MAX && done < min_size(deferred, most) && os_may_give_back();) {
        if (k->mapping.address == 0 || !k->deferred) {
            k++;
            continue;
        }
        size_t piece = min_size(k->mapping.bytes, piece_max), rest = k->mapping.bytes - piece;
        uintptr_t end = k->mapping.address + rest;
        cached_bytes -= piece;
        allowance_return(piece);
        mapping_set(&k->mapping, rest == 0 ? 0 : k->mapping.address, rest);
        lock_release(&mapping_lock);
        os_give_back((void *)end, piece);
        pass_yield();
        done += piece;
        lock_take(&mapping_lock);
    }
    lock_release(&mapping_lock);
    return done;
}

void mapping_age(bool *changed)
{
    lock_take(&mapping_lock);
    peak_before = peak_bytes;
    peak_bytes = 0;
    for (struct kept *k = cache; k < cache + CACHE_MAX; k++)
        if (k->mapping.address != 0) {
            k->deferred |= k->aged;
            *changed |= !k->deferred;
            k->aged = true;
        }
    lock_release(&mapping_lock);
}

size_t mapping_purge(bool *changed)
{
    mapping_age(changed);
    return mapping_unmap_deferred(SIZE_MAX);
}

/* The last bytes of a kept one are due to go: all, also if there is no place for the rest, or so many that whole huge
 * pages are.  Returns how many. */
static size_t defer_end(struct kept *k, size_t bytes)
{
    const struct mapping m = k->mapping;
    const size_t end = align_down(bytes, HUGE_PAGE_BYTES);
    struct kept *other = find_unused();
    if (bytes >= m.bytes || (end > 0 && other == NULL)) {
        k->deferred = true;
        return m.bytes;
    }
    if (end == 0)
        return 0;
    mapping_set(&k->mapping, m.address, m.bytes - end);
    put(other, (struct kept){.mapping = {m.address + m.bytes - end, end, .is_several = m.is_several},
                             .deferred = true,
                             .dontfork = k->dontfork});
    return end;
}

void mapping_defer(size_t keep)
{
    size_t left = 0;
    lock_take(&mapping_lock);
    for (const struct kept *k = cache; k < cache + CACHE_MAX; k++)
        left += k->mapping.address != 0 && !k->deferred ? k->mapping.bytes : 0;
    for (struct kept *k = cache; k < cache + CACHE_MAX && left > keep; k++)
        if (k->mapping.address != 0 && !k->deferred)
            left -= defer_end(k, left - keep);
    lock_release(&mapping_lock);
}

size_t mapping_trim(size_t keep)
{
    mapping_defer(keep);
    return mapping_unmap_deferred(SIZE_MAX);
}

size_t mapping_cache_bytes(void)
{
    return cached_bytes;
}

void mapping_cache_recover(void)
{
    cached_bytes = 0;
    for (struct kept *k = cache; k < cache + CACHE_MAX; k++) {
        if (k->dontfork)
            mapping_set(&k->mapping, 0, 0);
        if (k->mapping.address != 0)
            cached_bytes += k->mapping.bytes;
    }
}
