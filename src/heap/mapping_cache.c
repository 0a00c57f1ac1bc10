/* SPDX-License-Identifier: MIT */
#include "heap/mapping_cache.h"

#include "base/bits.h"
#include "heap/ample.h"
#include "heap/demand.h"
#include "heap/large.h"
#include "heap/mapping_table.h"
#include "heap/pass.h"
#include "heap/span.h"
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

/* Where memory is ample as much is kept as was in use. */
static bool is_too_much(size_t bytes)
{
    const size_t kept = cached_bytes + bytes, most = min_size(in_use_bytes() + bytes, MAPPING_AMPLE_BYTES);
    return kept > MAPPING_CACHE_BYTES && (kept > most || !is_ample(bytes));
}

bool mapping_cache_prepare(uintptr_t address, size_t bytes, bool wanted)
{
    return has_room(bytes, wanted) && (!wanted || is_ample(bytes) || os_give_up((void *)address, bytes));
}

/* The first bytes of a kept one; the rest stays.  False if the system refuses it. */
static bool take_from(struct kept *k, size_t bytes)
{
    const struct mapping found = k->mapping;
    /* Children get it when it is out of the cache: one that is made meanwhile does not know of it. */
    mapping_set(&k->mapping, 0, 0);
    if (unlikely(k->dontfork && !os_keep_from_children((void *)found.address, bytes, false))) {
        mapping_set(&k->mapping, found.address, found.bytes);
        return false;
    }
    cached_bytes -= bytes;
    if (bytes < found.bytes)
        mapping_set(&k->mapping, found.address + bytes, found.bytes - bytes);
    return true;
}

/* The shortest that is long enough; else, if it may be lengthened, the longest of at least half the length; or NULL. */
static struct kept *find(size_t bytes, size_t alignment)
{
    const bool may_lengthen = alignment <= os_page_bytes && bytes >= MAPPING_BYTES_MIN;
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

uintptr_t mapping_cache_take(size_t bytes, size_t alignment, size_t *got)
{
    ASSERT(lock_is_mine(&mapping_lock));
    struct kept *k = find(bytes, alignment);
    if (k == NULL)
        return 0;
    const struct mapping found = k->mapping;
    const size_t part = bytes < MAPPING_BYTES_MIN ? bytes : align_up(bytes, HUGE_PAGE_BYTES);
    *got = found.bytes <= bytes + bytes / 4 ? found.bytes : part;
    return take_from(k, *got) ? found.address : 0;
}

/* No child is to copy the page tables of what it will unmap, nor to hold what is much.  True if it was tried: if the
 * system refuses, it may have done so for a part. */
static bool keep_from_children(uintptr_t address, size_t bytes, bool deferred)
{
    const bool is_much = deferred || cached_bytes + bytes > MAPPING_CACHE_BYTES;
    if (is_much)
        os_keep_from_children((void *)address, bytes, true);
    return is_much;
}

bool mapping_cache_give(uintptr_t address, size_t bytes, bool wanted)
{
    ASSERT(lock_is_mine(&mapping_lock));
    bool deferred = !wanted || is_too_much(bytes);
    if (!has_room(bytes, wanted))
        return false;
    for (struct kept *k = cache; k < cache + CACHE_MAX; k++) {
        if (k->mapping.address != 0)
            continue;
        k->aged = false;
        k->deferred = deferred;
        k->dontfork = keep_from_children(address, bytes, deferred);
        mapping_set(&k->mapping, address, bytes);
        cached_bytes += bytes;
        if (deferred)
            demand_raise();
        return true;
    }
    return false;
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
    for (struct kept *k = cache; k < cache + CACHE_MAX && done < min_size(deferred, most);) {
        if (k->mapping.address == 0 || !k->deferred) {
            k++;
            continue;
        }
        size_t piece = min_size(k->mapping.bytes, piece_max), rest = k->mapping.bytes - piece;
        uintptr_t end = k->mapping.address + rest;
        cached_bytes -= piece;
        mapping_set(&k->mapping, rest == 0 ? 0 : k->mapping.address, rest);
        lock_release(&mapping_lock);
        os_unmap((void *)end, piece);
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

size_t mapping_trim(size_t keep)
{
    lock_take(&mapping_lock);
    size_t left = cached_bytes;
    for (struct kept *k = cache; k < cache + CACHE_MAX; k++)
        if (k->mapping.address != 0 && left >= keep + k->mapping.bytes) {
            k->deferred = true;
            left -= k->mapping.bytes;
        }
    lock_release(&mapping_lock);
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
