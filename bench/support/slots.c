/* SPDX-License-Identifier: MIT
 *
 * Why: see slots.h.
 */
#include "slots.h"

#include "args.h"
#include "memory.h"

#include <stdio.h>

void slots_open(struct slots *slots)
{
    if (slots->min < 8 || slots->max < slots->min || !slots->count)
        args_reject("min, max, slots", "8 <= min <= max, at least one slot");
    slots->slot = pages_map(slots->count * sizeof(struct slot));
    slots->errors = 0;
    for (uint64_t i = 0; i < slots->count; i++) {
        uint64_t size = random_between(slots->random, slots->min, slots->max);
        slots->slot[i].block = malloc(size);
        slots->slot[i].size = size;
        if (!slots->slot[i].block) {
            fprintf(stderr, "out of memory\n");
            exit(3);
        }
        *slots->slot[i].block = slots_mark(i, size);
    }
}

uint64_t slots_close(struct slots *slots)
{
    for (uint64_t i = 0; i < slots->count; i++) {
        slots->errors += *slots->slot[i].block != slots_mark(i, slots->slot[i].size);
        free(slots->slot[i].block);
    }
    pages_unmap(slots->slot, slots->count * sizeof(struct slot));
    return slots->errors;
}
