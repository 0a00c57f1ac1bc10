/* SPDX-License-Identifier: MIT
 *
 * Decay without a manager (one cpu, a quota, a seccomp filter, SUTLER_MANAGER=off): the purge that is otherwise made on
 * the manager's clock is made by slow paths of the program, in pieces.  What has been free for two rounds goes back.  A
 * thread in a slow path now and then looks at the clock; if a piece is due, and nobody is at one, it purges for some
 * hundred microseconds.  The next is due when so many times as long as this one took has passed, less what this one was
 * late, so all of it takes a bounded share of one cpu's time, however large the heap is, and a round begins half a
 * second after the last one began at the earliest.  A program that makes no call gives nothing back: nobody is there to
 * do it.
 *
 * (jemalloc's decay without background threads and mimalloc's purge delay are made by calls of the program, too.)
 */
#ifndef SUTLER_HEAP_DECAY_H
#define SUTLER_HEAP_DECAY_H

#include "heap/demand.h"

/* A round has begun and not ended: it is worth it to look more often. */
extern _Atomic bool decay_is_under_way;
/* Looks at the clock, and makes the piece that is due.  By slow paths, as their last work, with no lock held and before
 * another slow path may begin. */
void decay_in_passing(void);

/* In a child: the round is lost with the thread that was at it. */
void decay_forget(void);

#endif
