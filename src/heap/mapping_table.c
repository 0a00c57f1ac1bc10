/* SPDX-License-Identifier: MIT */
#include "heap/mapping_table.h"

#include "base/bits.h"
#include "heap/allowance.h"
#include "os/os.h"

/* What an entry's address says when it is none: never used, and removed. */
#define UNUSED 0u
#define TOMBSTONE 1u
#define CAPACITY_MIN 256u /* a power of two */

/* Replaced as a whole, by one store: a child made in the middle of it finds the old one or the new one. */
struct table {
    size_t capacity, filled; /* filled counts tombstones */
    struct mapping entry[];
};

struct lock mapping_lock = LOCK_FREE(rank_mapping);

static struct table *table;
static size_t blocks, bytes_total;

static size_t table_bytes(size_t capacity)
{
    return align_up(sizeof *table + capacity * sizeof table->entry[0], os_page_bytes);
}

static size_t home(const struct table *t, uintptr_t address)
{
    return (size_t)((address >> 12) * 0x9e3779b97f4a7c15ull >> 20) & (t->capacity - 1);
}

struct mapping *mapping_table_find(uintptr_t address)
{
    ASSERT(lock_is_mine(&mapping_lock));
    if (table == NULL || address <= TOMBSTONE)
        return NULL;
    for (size_t i = home(table, address);; i = (i + 1) & (table->capacity - 1)) {
        if (table->entry[i].address == address)
            return &table->entry[i];
        if (table->entry[i].address == UNUSED)
            return NULL;
    }
}

static void insert(struct table *t, struct mapping mapping)
{
    size_t i = home(t, mapping.address);
    while (t->entry[i].address > TOMBSTONE)
        i = (i + 1) & (t->capacity - 1);
    t->filled += t->entry[i].address == UNUSED;
    struct mapping all = mapping;
    all.address = t->entry[i].address; /* set last */
    t->entry[i] = all;
    mapping_set(&t->entry[i], mapping.address, mapping.bytes);
}

void mapping_table_insert(struct mapping mapping)
{
    ASSERT(lock_is_mine(&mapping_lock));
    struct mapping *m = mapping_table_find(mapping.address);
    if (unlikely(m != NULL)) { /* only in a child: one a vanished thread had moved away */
        mapping_table_set_bytes(m, mapping.bytes);
        return;
    }
    insert(table, mapping);
    blocks++;
    bytes_total += mapping.bytes;
    if (mapping.is_fresh)
        allowance_promise(mapping.bytes);
    else
        allowance_use(mapping.bytes);
}

void mapping_table_remove(struct mapping *m)
{
    ASSERT(lock_is_mine(&mapping_lock));
    m->address = TOMBSTONE;
    blocks--;
    bytes_total -= m->bytes;
    allowance_return(m->bytes);
}

void mapping_table_set_bytes(struct mapping *m, size_t bytes)
{
    ASSERT(lock_is_mine(&mapping_lock));
    bytes_total += bytes - m->bytes;
    if (bytes > m->bytes)
        allowance_promise(bytes - m->bytes);
    else
        allowance_return(m->bytes - bytes);
    m->bytes = bytes;
}

/* At most half full, tombstones included. */
bool mapping_table_reserve(void)
{
    ASSERT(lock_is_mine(&mapping_lock));
    struct table *old = table;
    if (old != NULL && (old->filled + 1) * 2 <= old->capacity)
        return true;
    const size_t wanted = 1ul << (top_bit(max_size(CAPACITY_MIN, blocks * 4 + 1) - 1) + 1);
    struct table *larger = os_map(table_bytes(wanted));
    if (larger == NULL)
        return old != NULL && old->filled + 1 < old->capacity; /* slower, not wrong */
    larger->capacity = wanted;
    for (size_t i = 0; old != NULL && i < old->capacity; i++)
        if (old->entry[i].address > TOMBSTONE)
            insert(larger, old->entry[i]);
    __atomic_store_n(&table, larger, __ATOMIC_RELEASE);
    if (old != NULL)
        os_unmap(old, table_bytes(old->capacity));
    return true;
}

size_t mapping_table_count(void)
{
    return __atomic_load_n(&blocks, __ATOMIC_RELAXED);
}

size_t mapping_table_bytes(void)
{
    return __atomic_load_n(&bytes_total, __ATOMIC_RELAXED);
}

#ifdef SUTLER_HARDENED
const void *mapping_table_where(size_t *bytes)
{
    const struct table *t = __atomic_load_n(&table, __ATOMIC_ACQUIRE);
    *bytes = t == NULL ? 0 : table_bytes(t->capacity);
    return t;
}
#endif

void mapping_table_recover(void)
{
    blocks = bytes_total = 0;
    for (size_t i = 0; table != NULL && i < table->capacity; i++)
        if (table->entry[i].address > TOMBSTONE) {
            blocks++;
            bytes_total += table->entry[i].bytes;
        }
}
