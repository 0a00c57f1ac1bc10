/* SPDX-License-Identifier: MIT
 *
 * Which mappings are blocks: a hash table by address, for they lie outside the region, whose descriptors do not cover
 * them.  All under mapping_lock.
 */
#ifndef SUTLER_HEAP_MAPPING_TABLE_H
#define SUTLER_HEAP_MAPPING_TABLE_H

#include <stdint.h>

#include "os/lock.h"

extern struct lock mapping_lock;

struct mapping {
    uintptr_t address;
    size_t bytes;
    size_t asked; /* so many bytes, the last time; the rest is room */
    bool is_fresh; /* none of its pages were there when it was taken */
    bool was_asked; /* huge pages were asked for, then */
    bool grew; /* it was made longer */
    bool is_several; /* to the system, it may be, which makes longer only what is one */
    uint8_t swings; /* so often it was made shorter and then longer, within a while each time */
    uint64_t cut_ns, swung_ns; /* when it was made shorter; and longer after that */
#ifdef SUTLER_HARDENED
    bool is_quarantined;
    uint8_t family; /* enum family */
    size_t usable, slack; /* bytes before the guard, and how many more that is than were asked for; then comes room */
#endif
};

/* In this order, so that a child made by a thread's _Fork in the middle of it finds the mapping with its size or not
 * at all. */
static inline void mapping_set(struct mapping *m, uintptr_t address, size_t bytes)
{
    __atomic_store_n(&m->bytes, bytes, __ATOMIC_RELEASE);
    __atomic_store_n(&m->address, address, __ATOMIC_RELEASE);
}

/* The mapping that starts at `address`, or NULL; valid until the next insertion. */
struct mapping *mapping_table_find(uintptr_t address);

/* Makes room for one more; false without memory. */
bool mapping_table_reserve(void);
/* After mapping_table_reserve. */
void mapping_table_insert(struct mapping mapping);
void mapping_table_remove(struct mapping *m);
void mapping_table_set_bytes(struct mapping *m, size_t bytes);

/* How many there are, and their bytes.  Both may be asked without the lock. */
size_t mapping_table_count(void);
size_t mapping_table_bytes(void);

#ifdef SUTLER_HARDENED
/* Where the table lies at the moment: it names all mappings, those that nobody points to as well.  The
 * lock is held, or other threads are stopped. */
const void *mapping_table_where(size_t *bytes);
#endif

/* In a child made in the middle of something. */
void mapping_table_recover(void);

#endif
