/* SPDX-License-Identifier: MIT
 *
 * What a huge page costs in processor time, compared with as many small ones.  Mostly a fifth; but where the system's
 * host takes free memory back, the system needs milliseconds to find a huge page, while small ones are still to be had.
 * Only trying tells when that begins and ends.
 *
 * While huge pages are dear, the next one is tried after a multiple of the time that the last one took, so the tries
 * cost a few hundredths of the time, whatever a page costs.
 *
 * May be called from any thread: what two note at once may be lost.
 */
#ifndef SUTLER_HEAP_HUGE_PRICE_H
#define SUTLER_HEAP_HUGE_PRICE_H

#include "base/compiler.h"

/* What to measure with: processor time of this thread, where the system may be asked; else the clock. */
uint64_t huge_price_clock_us(void);

/* What was seen: small pages of so many bytes were prefaulted; a huge page was; the system gave small ones in place of
 * a huge one. */
void huge_price_note_small(uint64_t used_us, size_t bytes);
void huge_price_note_huge(uint64_t used_us, uint64_t now_ns);
void huge_price_note_refused(uint64_t now_ns);

/* True once enough small pages were seen. */
bool huge_price_is_known(void);
/* True if the last ones were dear or refused, and it is not time to try again. */
bool huge_price_is_dear(uint64_t now_ns);
/* True if the last one that was asked for came: the system has some. */
bool huge_price_is_paid(void);
/* True if a huge page should be asked for: the last ones were fair on the average, or it is time to try again. */
bool huge_price_is_fair(uint64_t now_ns);

#endif
