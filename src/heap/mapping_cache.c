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

bool mapping_cache_prepare(uintptr_t address, size_t bytes, bool wanted)
{
    size_t in_use = span_in_use_bytes() + mapping_table_bytes();
    return has_room(bytes, wanted) &&
           (ample_for(cached_bytes + bytes + span_dirty_bytes(), in_use) || os_give_up((void *)address, bytes));
}

uintptr_t mapping_cache_take(size_t bytes, size_t alignment, size_t *got)
{
    ASSERT(lock_is_mine(&mapping_lock));
    for (struct kept *k = cache; k < cache + CACHE_MAX; k++) {
        struct kept found = *k;
        if (found.mapping.address == 0 || found.mapping.bytes < bytes || found.mapping.bytes > bytes + bytes / 4 ||
            (found.mapping.address & (alignment - 1)) != 0)
            continue;
        /* Children get it when it is out of the cache: one that is made meanwhile does not know of it. */
        mapping_set(&k->mapping, 0, 0);
        if (unlikely(found.dontfork &&
                     !os_keep_from_children((void *)found.mapping.address, found.mapping.bytes, false))) {
            mapping_set(&k->mapping, found.mapping.address, found.mapping.bytes);
            continue;
        }
        cached_bytes -= found.mapping.bytes;
        *got = found.mapping.bytes;
        return found.mapping.address;
    }
    return 0;
}

bool mapping_cache_give(uintptr_t address, size_t bytes, bool wanted)
{
    ASSERT(lock_is_mine(&mapping_lock));
    bool deferred = !wanted || cached_bytes + bytes > MAPPING_CACHE_BYTES;
    if (!has_room(bytes, wanted))
        return false;
    for (struct kept *k = cache; k < cache + CACHE_MAX; k++) {
        if (k->mapping.address != 0)
            continue;
        k->aged = false;
        k->deferred = deferred;
        k->dontfork = deferred && os_keep_from_children((void *)address, bytes, true);
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
