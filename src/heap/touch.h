/* SPDX-License-Identifier: MIT
 *
 * Touching the pages of the reserve, by the manager, while the program may take them.
 *
 * A touch does no harm to what a page holds.  But it faults where the program may not write, and a program may forbid
 * writing to a page of a block it was given (mprotect): so no page is touched that has been handed out.  The manager
 * names the page it is about to touch and then looks whether it is still free; whoever takes a span first marks it
 * taken and then looks whether a page of it is named (Dekker's handshake).  If it is he takes another span: a touch is
 * done in a microsecond, but the manager may be put off its processor, or held by a debugger, in the middle of it.
 */
#ifndef SUTLER_HEAP_TOUCH_H
#define SUTLER_HEAP_TOUCH_H

#include "heap/reserve.h"

enum touched {
    touched_pages,
    touched_huge,  /* the first touch brought them all */
    touched_taken, /* the program took it meanwhile: the rest is left to it */
};

/* Has the system put pages behind a piece of the reserve, one by one: the lock the program's own mmap needs is not held
 * for longer than a page (Linux 6.4). */
enum touched touch_piece(const struct reserve_piece *piece);

/* Of slices that have just left the free spans: true if a page of them is being touched, and that lasts for longer than
 * it should.  No lock held. */
bool touch_lasts(uint32_t first, size_t slices);

/* Of the same slices: whether the huge page they begin in is being touched, or a page of them: the program has all but
 * caught up with the manager, and may clear the page once more. */
bool touch_is_beside(uint32_t first, size_t slices);

/* For who cannot do without these slices: waits. */
void touch_await(uint32_t first, size_t slices);

/* In a child: who was touching is not there. */
void touch_forget(void);

#endif
