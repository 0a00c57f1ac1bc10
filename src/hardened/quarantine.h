/* SPDX-License-Identifier: MIT
 *
 * The quarantine of freed blocks of superblocks (quarantine.c).
 */
#ifndef SUTLER_HARDENED_QUARANTINE_H
#define SUTLER_HARDENED_QUARANTINE_H

#include "base/compiler.h"
#include "marks/layout.h"

/* Puts the block of class `c` into quarantine and returns the one in whose place it is; NULL: there was none.  `p` itself if
 * there is no quarantine at the moment. */
void *quarantine_exchange(unsigned c, void *p);
/* The same as one section, where sections run (x86-64): `p` itself if there are no rings yet, too. */
void *quarantine_swap(void *p, unsigned c);

/* Releases whatever is in quarantine; true if there was any.  Holding no lock. */
bool quarantine_release_all(void);

/* In the child of a fork. */
void quarantine_recover(void);

#endif
