/* SPDX-License-Identifier: MIT
 *
 * Pages to purge, collected into batches: a range costs a quarter of what it costs alone.  One batch at a time, in a
 * pass: its ranges are not in it, for a program's thread may purge on a small stack.
 */
#ifndef SUTLER_HEAP_PURGE_BATCH_H
#define SUTLER_HEAP_PURGE_BATCH_H

#include <stdint.h>

#include "os/os.h"

struct purge_batch {
    unsigned count;
    size_t bytes; /* purged so far; nothing of a batch of which a part was refused */
    size_t pending_bytes;
    uintptr_t split; /* the huge page split last, since the last flush; 0: none */
    bool refused; /* some are not purged and keep their content (locked memory) */
};

/* Adds a range, whose content may be lost from here on.  Splits the huge pages of which it covers a part: purging a
 * part of a whole one frees nothing.  If ranges come in the order of their addresses, each page is split once. */
void purge_batch_add(struct purge_batch *batch, void *address, size_t bytes);

void purge_batch_flush(struct purge_batch *batch);

#endif
