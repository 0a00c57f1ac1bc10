/* SPDX-License-Identifier: MIT
 *
 * Mappings of their own for the largest blocks, found by address in a hash table (they lie outside the window, so the
 * window's descriptors do not cover them).
 */
#include "heap/mapping.h"

#include "base/bits.h"
#include "heap/demand.h"
#include "heap/large.h"
#include "heap/purge.h"
#include "os/lock.h"
#include "os/os.h"

struct mapping {
    uintptr_t address; /* 0: unused; TOMBSTONE: removed */
    size_t bytes;
};

#define TOMBSTONE 1u
#define TABLE_MIN 256u /* entries; a power of two */
#define CACHE_MAX 16

/* Replaced as a whole, by one store: a child made in the middle of it finds the old one or the new one. */
struct table {
    size_t capacity, filled; /* filled counts tombstones */
    struct mapping entry[];
};

struct lock mapping_lock = LOCK_FREE;
_Atomic bool mapping_is_helped;
_Atomic uint32_t heap_demand = demand_none;

static struct table *table;
static size_t blocks, bytes_total;
static struct mapping cache[CACHE_MAX];
static bool cache_aged[CACHE_MAX]; /* there at the last mapping_purge */
static bool cache_leaves[CACHE_MAX]; /* to be unmapped as soon as may be */
static size_t cached_bytes;

static size_t table_bytes(size_t capacity)
{
    return align_up(sizeof *table + capacity * sizeof table->entry[0], os_page_bytes);
}

static size_t home(const struct table *t, uintptr_t address)
{
    return (size_t)((address >> 12) * 0x9e3779b97f4a7c15ull >> 20) & (t->capacity - 1);
}

static struct mapping *find_locked(uintptr_t address)
{
    if (table == NULL || address <= TOMBSTONE)
        return NULL;
    for (size_t i = home(table, address);; i = (i + 1) & (table->capacity - 1)) {
        if (table->entry[i].address == address)
            return &table->entry[i];
        if (table->entry[i].address == 0)
            return NULL;
    }
}

/* The address is stored last: an entry is there with its size or not at all. */
static void entry_set(struct mapping *m, uintptr_t address, size_t bytes)
{
    __atomic_store_n(&m->bytes, bytes, __ATOMIC_RELEASE);
    __atomic_store_n(&m->address, address, __ATOMIC_RELEASE);
}

static void insert(struct table *t, uintptr_t address, size_t bytes)
{
    size_t i = home(t, address);
    while (t->entry[i].address > TOMBSTONE)
        i = (i + 1) & (t->capacity - 1);
    t->filled += t->entry[i].address == 0;
    entry_set(&t->entry[i], address, bytes);
}

static void insert_locked(uintptr_t address, size_t bytes)
{
    struct mapping *m = find_locked(address); /* only in a child: one a vanished thread had moved away */
    if (unlikely(m != NULL))
        entry_set(m, address, bytes);
    else
        insert(table, address, bytes);
}

/* Room for one more entry: at most half full, tombstones included. */
static bool reserve_locked(void)
{
    struct table *old = table;
    if (old != NULL && (old->filled + 1) * 2 <= old->capacity)
        return true;
    size_t wanted = max_size(TABLE_MIN, align_up(blocks * 4 + 1, TABLE_MIN));
    wanted = 1ul << (top_bit(wanted - 1) + 1);
    struct table *larger = os_map(table_bytes(wanted));
    if (larger == NULL)
        return old != NULL && old->filled + 1 < old->capacity; /* slower, not wrong */
    larger->capacity = wanted;
    for (size_t i = 0; old != NULL && i < old->capacity; i++)
        if (old->entry[i].address > TOMBSTONE)
            insert(larger, old->entry[i].address, old->entry[i].bytes);
    __atomic_store_n(&table, larger, __ATOMIC_RELEASE);
    if (old != NULL)
        os_unmap(old, table_bytes(old->capacity));
    return true;
}

/* ---- the cache ---- */

/* A cached mapping that fits without wasting more than a quarter. */
static uintptr_t cache_take_locked(size_t bytes, size_t alignment, size_t *got)
{
    for (int i = 0; i < CACHE_MAX; i++)
        if (cache[i].address != 0 && cache[i].bytes >= bytes && cache[i].bytes <= bytes + bytes / 4 &&
            (cache[i].address & (alignment - 1)) == 0) {
            uintptr_t address = cache[i].address;
            *got = cache[i].bytes;
            cached_bytes -= cache[i].bytes;
            cache[i].address = 0;
            return address;
        }
    return 0;
}

static bool cache_give_locked(uintptr_t address, size_t bytes)
{
    bool leaves = cached_bytes + bytes > MAPPING_CACHE_BYTES;
    if (leaves && (!atomic_load(&mapping_is_helped) || cached_bytes + bytes > MAPPING_LEAVING_BYTES))
        return false;
    for (int i = 0; i < CACHE_MAX; i++)
        if (cache[i].address == 0) {
            cache_aged[i] = false;
            cache_leaves[i] = leaves;
            entry_set(&cache[i], address, bytes);
            cached_bytes += bytes;
            if (leaves)
                demand_raise();
            return true;
        }
    return false;
}

/* Unmaps what leaves, in pieces off the end: the program's own mmap waits for as long as one takes, a fork or another
 * purge comes in between, and the rest may be had again.  No more than was there at the beginning. */
size_t mapping_unmap_leaving(void)
{
    const size_t piece_max = 8ul << 20;
    size_t leaving = 0, done = 0;
    lock_take(&mapping_lock);
    for (int i = 0; i < CACHE_MAX; i++)
        leaving += cache[i].address != 0 && cache_leaves[i] ? cache[i].bytes : 0;
    for (int i = 0; i < CACHE_MAX && done < leaving;) {
        if (cache[i].address == 0 || !cache_leaves[i]) {
            i++;
            continue;
        }
        size_t piece = min_size(cache[i].bytes, piece_max), rest = cache[i].bytes - piece;
        uintptr_t end = cache[i].address + rest;
        cached_bytes -= piece;
        entry_set(&cache[i], rest == 0 ? 0 : cache[i].address, rest);
        lock_release(&mapping_lock);
        os_unmap((void *)end, piece);
        purge_let_others();
        done += piece;
        lock_take(&mapping_lock);
    }
    lock_release(&mapping_lock);
    return done;
}

size_t mapping_purge(bool all, bool *changed)
{
    lock_take(&mapping_lock);
    for (int i = 0; i < CACHE_MAX; i++)
        if (cache[i].address != 0) {
            cache_leaves[i] |= all || cache_aged[i];
            if (changed != NULL)
                *changed |= !cache_leaves[i];
            cache_aged[i] = true;
        }
    lock_release(&mapping_lock);
    return mapping_unmap_leaving();
}

/* Before memory is refused: what is kept goes back, and what the manager has taken out to unmap is waited for. */
static void make_room(void)
{
    lock_take(&purge_lock);
    mapping_purge(true, NULL);
    lock_release(&purge_lock);
}

/* ---- blocks ---- */

/* Fresh memory at a multiple of `alignment`: maps more and cuts off both ends. */
static uintptr_t map_aligned(size_t bytes, size_t alignment)
{
    size_t slack = alignment > os_page_bytes ? alignment - os_page_bytes : 0;
    if (bytes + slack < bytes)
        return 0;
    char *mapped = os_map(bytes + slack);
    if (mapped == NULL || slack == 0)
        return (uintptr_t)mapped;
    uintptr_t start = align_up((uintptr_t)mapped, alignment);
    size_t head = start - (uintptr_t)mapped, tail = slack - head;
    if (head > 0)
        os_unmap(mapped, head);
    if (tail > 0)
        os_unmap((char *)start + bytes, tail);
    return start;
}

void *mapping_take(size_t size, size_t alignment, bool *zero)
{
    size_t bytes = align_up(max_size(size, 1), os_page_bytes);
    if (bytes < size)
        return NULL;
    lock_take(&mapping_lock);
    uintptr_t address = cache_take_locked(bytes, alignment, &bytes);
    *zero = address == 0;
    lock_release(&mapping_lock);
    if (address == 0) {
        address = map_aligned(bytes, alignment);
        if (address == 0) {
            make_room();
            address = map_aligned(bytes, alignment);
        }
        if (address == 0)
            return NULL;
    }
    lock_take(&mapping_lock);
    bool reserved = reserve_locked();
    if (reserved) {
        insert_locked(address, bytes);
        blocks++;
        bytes_total += bytes;
    }
    lock_release(&mapping_lock);
    if (!reserved) {
        os_unmap((void *)address, bytes);
        return NULL;
    }
    return (void *)address;
}

size_t mapping_bytes(const void *p, bool may_wait)
{
    if (may_wait)
        lock_take(&mapping_lock);
    else if (!lock_try(&mapping_lock))
        return BYTES_UNKNOWN;
    const struct mapping *m = find_locked((uintptr_t)p);
    size_t bytes = m == NULL ? 0 : m->bytes;
    lock_release(&mapping_lock);
    return bytes;
}

bool mapping_give(void *p)
{
    lock_take(&mapping_lock);
    struct mapping *m = find_locked((uintptr_t)p);
    size_t bytes = 0;
    bool cached = false;
    if (m != NULL) {
        bytes = m->bytes;
        m->address = TOMBSTONE;
        blocks--;
        bytes_total -= bytes;
        cached = cache_give_locked((uintptr_t)p, bytes);
    }
    lock_release(&mapping_lock);
    if (bytes != 0 && !cached)
        os_unmap(p, bytes);
    return bytes != 0;
}

/* The lock stays held over the move: else another thread could be given the old address before the table knows. */
static void *resize_locked(void *p, size_t wanted)
{
    bool may_move = reserve_locked(); /* a move leaves a tombstone behind and takes a new entry */
    struct mapping *m = find_locked((uintptr_t)p);
    if (m == NULL || m->bytes == wanted)
        return m == NULL ? NULL : p;
    void *moved = os_remap(p, m->bytes, wanted, may_move);
    if (moved == NULL)
        return NULL;
    bytes_total += wanted - m->bytes;
    m->bytes = wanted;
    if (moved != p) {
        m->address = TOMBSTONE;
        insert_locked((uintptr_t)moved, wanted);
    }
    return moved;
}

static void *resize(void *p, size_t wanted)
{
    lock_take(&mapping_lock);
    void *moved = resize_locked(p, wanted);
    lock_release(&mapping_lock);
    return moved;
}

void *mapping_resize(void *p, size_t size)
{
    size_t wanted = align_up(size, os_page_bytes);
    if (wanted < size)
        return NULL;
    void *moved = resize(p, wanted);
    if (moved == NULL) {
        make_room();
        moved = resize(p, wanted);
    }
    return moved;
}

void mapping_count(struct large_counts *counts)
{
    counts->blocks += blocks;
    counts->bytes += bytes_total;
    counts->mapping_blocks = blocks;
    counts->mapping_bytes = bytes_total;
    counts->cached_bytes = cached_bytes;
}

void mapping_recover(void)
{
    blocks = bytes_total = cached_bytes = 0;
    for (size_t i = 0; table != NULL && i < table->capacity; i++)
        if (table->entry[i].address > TOMBSTONE) {
            blocks++;
            bytes_total += table->entry[i].bytes;
        }
    for (int i = 0; i < CACHE_MAX; i++)
        if (cache[i].address != 0)
            cached_bytes += cache[i].bytes;
    lock_reset(&mapping_lock);
}
