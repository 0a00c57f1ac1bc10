/* SPDX-License-Identifier: MIT
 *
 * Two read what was noted for a sweep: src/hardened/look.c.
 *
 * Whoever sweeps notes pieces while the threads are stopped, opens them to the manager, reads what it gets of them, closes, and
 * waits for the manager; then the threads go on, and pages may go.  The manager may come at any time, or not at all.
 *
 * Claims: each piece is read before the threads go on, once, and none afterwards.
 *
 * Broken on purpose:
 *   LOOK_FIRST      the manager sees that it is open before it says that it is there
 *   NO_WAIT         nobody is waited for
 *   COUNT_PLAIN     which piece is next is loaded and stored
 *   OPEN_EARLY      it is open before all pieces are noted, and before the count is that of this sweep
 */
#define SWEEPS 2
#define PIECES 3
#define VISITS 3

byte pieces, taken;
byte reads[PIECES];
bit stopped, is_open, others;
byte sweeps;

inline read_piece()
{
    assert(stopped);
    atomic { reads[mine]++; assert(reads[mine] == 1) }
}

inline take_pieces()
{
    do
    ::
#ifdef COUNT_PLAIN
       mine = taken;
       taken = mine + 1;
#else
       atomic { mine = taken; taken++ }
#endif
       if
       :: mine < pieces -> read_piece()
       :: else -> break
       fi
    od
}

active proctype sweeper()
{
    byte mine, n;
    do
    :: sweeps < SWEEPS ->
       stopped = 1;
#ifdef OPEN_EARLY
       is_open = 1;
#endif
       do
       :: pieces < PIECES -> pieces++
       :: break
       od;
       n = pieces;
       taken = 0;
       is_open = 1;
       take_pieces();
       is_open = 0;
#ifndef NO_WAIT
       others == 0;
#endif
       d_step {
           mine = 0;
           do
           :: mine < n -> assert(reads[mine] == 1); reads[mine] = 0; mine++
           :: else -> break
           od;
           mine = 0
       }
       pieces = 0;
       stopped = 0;
       sweeps++
    :: else -> break
    od
}

active proctype manager()
{
    byte mine, visits;
    bit seen;
    do
    :: visits < VISITS ->
       visits++;
#ifdef LOOK_FIRST
       seen = is_open;
       others = 1;
#else
       others = 1;
       seen = is_open;
#endif
       if
       :: seen -> take_pieces()
       :: else
       fi;
       others = 0
    :: else -> break
    od
}
