/* SPDX-License-Identifier: MIT
 *
 * Why: the contract of the checking layer (checks.c): around the engine, on the calling thread, or around the backend,
 * on whatever thread calls that.
 */
#ifndef ENGINES_CHECKS_H
#define ENGINES_CHECKS_H

#include "backend.h"

extern bool checks_inline;    /* the entry layer calls the four functions below */
extern bool checks_offloaded; /* `backend` is the checking version; the functions below are not for the entry layer */

struct backend checks_over(struct backend found); /* reads SUTLER_CHECKS; gives back `found`, or a version that checks */

void *checks_allocated(void *block, size_t size);        /* records and fills it; gives it back (NULL stays NULL) */
void *checks_allocated_zeroed(void *block, size_t size); /* the same for memory that is zero and must stay so */
bool checks_released(const char *function, void *block); /* false: reported, do not free it */
bool checks_known(const char *function, void *block);    /* false: reported */

void checks_fork_prepare(void); /* after engine_forks was counted up */
void checks_fork_child(void);

#endif
