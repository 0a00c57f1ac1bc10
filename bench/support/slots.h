/* SPDX-License-Identifier: MIT
 *
 * Why: random sizes and random lifetimes over a table of slots is the workload most others are variations of.  A step
 * picks a slot, checks and frees what is there, allocates a block of a random size, writes its first bytes and puts it
 * in.  The lifetimes come out geometric, with a mean of as many steps as there are slots.
 *
 * The first eight bytes of each block hold a mark made of the slot's number and the block's size, so that a block that
 * was handed out twice, or overwritten, is noticed when it is replaced.  The table itself lies outside the heap.
 */
#ifndef BENCH_SLOTS_H
#define BENCH_SLOTS_H

#include "random.h"

#include <stdint.h>
#include <stdlib.h>

struct slot {
    uint64_t *block;
    uint64_t size;
};

struct slots {
    struct slot *slot;
    uint64_t count;
    uint64_t min, max; /* sizes, min >= 8 */
    uint64_t touch;    /* bytes of each new block to write, >= 8, at 64-byte steps */
    struct random_source *random;
    uint64_t errors;
};

static inline uint64_t slots_mark(uint64_t index, uint64_t size)
{
    return (index << 32) ^ size ^ 0x5a5a000000000000u;
}

/* Replaces the block of one random slot. */
static inline void slots_step(struct slots *slots)
{
    uint64_t number = random_next(slots->random);
    uint64_t index = ((number >> 32) * slots->count) >> 32;
    uint64_t size = slots->min + (((number & 0xffffffffu) * (slots->max - slots->min + 1)) >> 32);
    struct slot *slot = &slots->slot[index];
    slots->errors += *slot->block != slots_mark(index, slot->size);
    free(slot->block);
    uint64_t *block = (uint64_t *)malloc(size);
    for (uint64_t offset = 64; offset < slots->touch && offset + 8 <= size; offset += 64)
        block[offset / 8] = offset;
    *block = slots_mark(index, size);
    slot->block = block;
    slot->size = size;
}

#ifdef __cplusplus
extern "C" {
#endif

/* Maps the table and fills every slot. */
void slots_open(struct slots *slots);

/* Checks and frees everything; returns the number of damaged blocks seen in the slots' whole life. */
uint64_t slots_close(struct slots *slots);

#ifdef __cplusplus
}
#endif
#endif
