/* SPDX-License-Identifier: MIT
 *
 * Memory that is read where it lies, while the threads are stopped.  It is noted in pieces first, and then read by
 * whoever sweeps, and by the manager as well if that comes by in time (look_help, manager/jobs.h): a sweep by a thread
 * of the program is over sooner so.
 *
 * Of a superblock's memory only what the program has is read.
 */
#ifndef SUTLER_HARDENED_LOOK_H
#define SUTLER_HARDENED_LOOK_H

#include "os/memory.h"

/* By whoever sweeps; in a pass, threads are stopped. */

/* Notes pages that are there.  False: they must not be read so. */
bool look_later(struct os_span pages);

struct looked {
    size_t bytes, outside_bytes; /* outside: of these, not the heap's */
};
/* Marks what is pointed to from all that was noted; nothing is noted then.  Afterwards nobody else reads. */
struct looked look_now(void);

/* In the child of a fork. */
void look_recover(void);

#endif
