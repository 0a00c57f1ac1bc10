/* SPDX-License-Identifier: MIT
 *
 * Why: MMT's library, which the designs 3, 4 and 5 share between clients and server (mmt_shared.c).
 */
#ifndef ENGINES_MMT_SHARED_H
#define ENGINES_MMT_SHARED_H

#include "base.h"

/* The library as a design calls it: in 3 to 5 under a lock.  Any thread. */
void *library_malloc(size_t size);
void library_free(void *block);

/* Designs 3 and 4: one block at a time through a queue. */
void shared_release(void *block);
void shared_manage(void);
void shared_start(void);
void shared_fork_prepare(void);
void shared_fork_child(void);

#endif
