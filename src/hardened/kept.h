/* SPDX-License-Identifier: MIT
 *
 * The second tier's list: freed blocks that have left the quarantine (quarantine.c, large.c) and are kept until a sweep
 * has found no pointer to them (sweep.c).
 *
 * Addresses are collected in batches of a page, one open batch a slot.  A place of it is taken by one atomic addition,
 * which counts the bytes as well; the block's address is stored then.  So a signal handler may come in anywhere, and a
 * late store finds its place still there: a batch is used again only when every place that was taken has been emptied.
 * Who takes the last place, or finds that the batch holds BATCH_BYTES, closes it and pushes it to those the next sweep
 * collects.
 *
 * A fork leaves every block in its batch, or, between the two steps, on its way and lost; batches that are being moved
 * from one list to another are lost with their blocks.  Lost means: never handed out again.  What was due stays due.
 * (tests/spin/kept.pml.)
 */
#ifndef SUTLER_HARDENED_KEPT_H
#define SUTLER_HARDENED_KEPT_H

#include "base/compiler.h"

enum kept_added {
    kept_noted,
    kept_much,    /* and so much that somebody should look whether it is time for a sweep */
    kept_no_room, /* there is no memory to write it down in, and it was not added */
};

/* Adds a freed block that keeps so many bytes.  Any thread [signal]. */
enum kept_added kept_add(void *p, size_t bytes);

/* Bytes and blocks of closed batches; and, of the bytes, those no sweep has judged yet. */
size_t kept_bytes(void);
size_t kept_fresh_bytes(void);
size_t kept_blocks(void);

/* ---- by whoever sweeps; in a pass ---- */

/* Closes the open batches, too: what a slot has collected so far. */
void kept_close_all(void);
/* All closed batches are due from now on; and once it is known which of their blocks are pointed to. */
void kept_collect(void);
void kept_judged(void);
/* Visits every block that is due. */
void kept_each(void (*visit)(void *p));
/* Goes through batches that are due, until `end_ns`: `resolve` is asked of each block how many bytes are gone, 0 if it
 * is to be kept, and told whether it is asked for the first time.  True if that was all of them. */
bool kept_resolve(size_t (*resolve)(void *p, bool is_first), uint64_t end_ns);

/* In the child of a fork, which has one thread. */
void kept_recover(void);

#endif
