/* SPDX-License-Identifier: MIT
 *
 * Purge: carving in reverse.  Superblocks are taken offline in batches (one fence for all of a batch), their free
 * lists validated and rebuilt without the blocks on wholly free pages, those pages purged, and put online again.
 * Meanwhile the program goes on: its frees to them are remote, its mallocs find other superblocks; no lock is held
 * while pages are purged.
 */
#ifndef SUTLER_HEAP_PURGE_H
#define SUTLER_HEAP_PURGE_H

#include "heap/pass.h"

/* One pass over all superblocks, free spans and cached mappings; bytes purged.  *changed (may be NULL) tells
 * whether anything is likely to be found by another pass.  Call with no lock held, one at a time (pass.h). */
size_t heap_purge(enum purge_what what, bool *changed);

/* malloc_trim: everything but `pad` bytes of free memory; bytes purged.  As heap_purge. */
size_t heap_trim(size_t pad);

/* Before memory is refused: what is kept of address space is to be had again.  First freed mappings alone; then
 * everywhere, unless that cannot make room for `bytes` in a row: superblocks without a block become spans, others lend
 * what is free of them (lend.h).  Call with no lock held. */
enum room { room_of_mappings, room_everywhere };
void heap_make_room(enum room where, size_t bytes);

#endif
