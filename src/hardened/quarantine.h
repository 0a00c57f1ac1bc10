/* SPDX-License-Identifier: MIT
 *
 * The quarantine of freed blocks of superblocks (quarantine.c).
 */
#ifndef SUTLER_HARDENED_QUARANTINE_H
#define SUTLER_HARDENED_QUARANTINE_H

#include "base/compiler.h"
#include "marks/layout.h"

/* Puts the block of class `c` into quarantine and returns the one in whose place it is; NULL: there was none.  `p`
 * itself if there is no quarantine at the moment. */
void *quarantine_exchange(unsigned c, void *p);
/* The same as one section: `p` itself if there are no rings yet, too, and where there is no such section. */
#if defined(__x86_64__)
#define QUARANTINE_HAS_SECTION true
void *quarantine_swap(void *p, unsigned c);
#else
#define QUARANTINE_HAS_SECTION false
static inline void *quarantine_swap(void *p, unsigned c __attribute__((unused)))
{
    return p;
}
#endif

/* Releases whatever is in quarantine; true if there was any.  Holding no lock. */
bool quarantine_release_all(void);

/* In the child of a fork. */
void quarantine_recover(void);

#endif
