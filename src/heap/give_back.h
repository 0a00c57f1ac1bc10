/* SPDX-License-Identifier: MIT
 *
 * Pages on their way back to the system, collected into batches: a range costs a quarter of what it costs alone.
 */
#ifndef SUTLER_HEAP_GIVE_BACK_H
#define SUTLER_HEAP_GIVE_BACK_H

#include <stdint.h>

#include "os/os.h"

struct give_back {
    unsigned count;
    size_t bytes; /* given back so far; nothing of a batch of which a part was refused */
    size_t pending_bytes;
    uintptr_t split; /* the huge page split last, since the last flush; 0: none */
    bool refused; /* some are not given back and keep their content (locked memory) */
    struct os_range range[OS_RANGES_MAX];
};

/* The range's content may be lost from here on.  Splits huge pages it covers a part of: giving back a part of a
 * whole one frees nothing.  Ranges in the order of their addresses split each page once. */
void give_back_add(struct give_back *pages, void *address, size_t bytes);

void give_back_flush(struct give_back *pages);

#endif
