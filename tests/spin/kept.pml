/* SPDX-License-Identifier: MIT
 *
 * The hardened library's list of kept blocks: src/hardened/kept.c.
 *
 * Two threads of one slot add a block or two each to its open batch, which has room for two. Whoever takes the last place closes the
 * batch, and so does the sweep, which collects the closed ones, gives back what is not pointed to, and makes empty batches spare
 * again. A store into a place that was taken may come at any time later.
 *
 * Claims: no block is in a place when it is given back, so a fork finds it at most once; none is given back twice; and in the end
 * none is lost.
 *
 * Broken on purpose:
 *   PLAIN_TAKE      a place is taken by a load and a store
 *   CLOSE_BLIND     who closes a batch does not look whether it was closed already
 *   REUSE_EARLY     a batch is spare again though a store into it is on its way
 *   GONE_LATE       a place is emptied after its block was given back
 *   NO_GENERATION   who found the open batch full puts another in its place, though it is open again by then
 *   OPEN_LATE       a batch is opened after it was put into the slot
 */
#ifndef FIRST
#define FIRST 2 /* blocks of the first thread */
#endif
#ifndef ADDS
#define ADDS 1 /* of the second */
#endif
#ifndef SWEEPS
#define SWEEPS 1 /* while they add; and one at the end */
#endif
#define PLACES  2
#define BATCHES 4
#define BLOCKS  4
#define NONE    7
#define GONE    9

byte taken[BATCHES] = PLACES; /* PLACES or more: it is closed */
byte place[8];                /* of batch b from PLACES * b on; 0: empty */
byte places[BATCHES], next[BATCHES];
byte slot = NONE, generation;
byte closed = NONE, spare = NONE, tag;
byte due = NONE, seen = NONE;
byte given[BLOCKS + 1];
byte finished;
bit all_added;

/* ---- spare batches: a stack with a tag ---- */

inline give_spare(b)
{
    do
    :: old = spare;
       next[b] = old;
       atomic {
           if
           :: spare == old -> spare = b; tag = (tag + 1) % 8; break
           :: spare != old
           fi
       }
    od
}

inline take_spare(b)
{
    do
    :: atomic { spare == NONE -> b = NONE; break }
    :: atomic { spare != NONE -> b = spare; old_tag = tag };
       old = next[b];
       atomic {
           if
           :: spare == b && tag == old_tag -> spare = old; tag = (tag + 1) % 8; break
           :: else
           fi
       }
    od
}

/* ---- adding ---- */

inline push_closed(b, count)
{
    places[b] = count;
    do
    :: old = closed;
       next[b] = old;
       atomic {
           if
           :: closed == old -> closed = b; break
           :: closed != old
           fi
       }
    od
}

inline close_batch(b)
{
    atomic { count = taken[b]; taken[b] = taken[b] + PLACES };
    if
    :: count == 0 -> give_spare(b)
#ifdef CLOSE_BLIND
    :: count >= PLACES -> push_closed(b, PLACES)
#else
    :: count >= PLACES
#endif
    :: count > 0 && count < PLACES -> push_closed(b, count)
    fi
}

#ifdef NO_GENERATION
#define IS_STILL_OPEN (slot == b)
#else
#define IS_STILL_OPEN (slot == b && generation == g)
#endif

inline publish()
{
#ifndef OPEN_LATE
    taken[fresh] = 0;
#endif
    atomic {
        if
        :: IS_STILL_OPEN -> slot = fresh; generation = (generation + 1) % 8; is_open = 1
        :: else
        fi
    };
#ifdef OPEN_LATE
    taken[fresh] = 0;
#endif
    if
    :: !is_open -> close_batch(fresh)
    :: is_open -> is_open = 0
    fi
}

inline open_batch()
{
    take_spare(fresh);
    if
    :: fresh != NONE -> publish()
    :: fresh == NONE
    fi
}

inline take_place(b)
{
#ifdef PLAIN_TAKE
    mine = taken[b];
    taken[b] = mine + 1
#else
    atomic { mine = taken[b]; taken[b] = taken[b] + 1 }
#endif
}

inline add(block)
{
    do
    :: atomic { b = slot; g = generation };
       mine = PLACES;
       if
       :: b != NONE && taken[b] < PLACES -> take_place(b)
       :: b == NONE || taken[b] >= PLACES
       fi;
       if
       :: mine < PLACES -> break
       :: mine >= PLACES ->
           open_batch();
           if
           :: fresh == NONE -> given[block] = 1; break /* without memory it is never handed out again */
           :: fresh != NONE
           fi
       fi
    od;
    if
    :: mine < PLACES ->
        place[PLACES * b + mine] = block;
        if
        :: mine + 1 == PLACES -> push_closed(b, PLACES)
        :: mine + 1 < PLACES
        fi
    :: mine >= PLACES
    fi
}

proctype adder(byte first, blocks)
{
    byte b, g, mine, old, old_tag, count, fresh;
    bit is_open;

    add(first);
    if
    :: blocks == 2 -> add(first + 1)
    :: blocks < 2
    fi;
    finished++
}

/* ---- the sweep ---- */

inline give_back(block)
{
    atomic {
        assert(place[PLACES * at] != block && place[PLACES * at + 1] != block);
        assert(given[block] == 0);
        given[block] = 1
    }
}

inline look_at_place(i)
{
    p = place[PLACES * at + i];
    if
    :: i >= places[at] || p == GONE
    :: i < places[at] && p == 0 -> left++
    :: i < places[at] && p != 0 && p != GONE ->
        if
#ifdef GONE_LATE
        :: give_back(p); place[PLACES * at + i] = GONE
#else
        :: place[PLACES * at + i] = GONE; give_back(p)
#endif
        :: !all_added -> left++ /* it is pointed to */
        fi
    fi
}

inline resolve()
{
    do
    :: due != NONE ->
        at = due;
        due = next[at];
        left = 0;
        look_at_place(0);
        look_at_place(1);
#ifdef REUSE_EARLY
        if
        :: place[PLACES * at] == 0 || place[PLACES * at + 1] == 0 -> left = 0
        :: else
        fi;
#endif
        if
        :: left == 0 ->
            place[PLACES * at] = 0;
            place[PLACES * at + 1] = 0;
            give_spare(at)
        :: left != 0 -> next[at] = seen; seen = at
        fi
    :: due == NONE -> break
    od
}

inline move_all(from)
{
    do
    :: from != NONE -> at = from; from = next[at]; next[at] = due; due = at
    :: from == NONE -> break
    od
}

inline close_slot()
{
    atomic { b = slot; g = generation };
    if
    :: b != NONE ->
        atomic {
            if
            :: slot == b && generation == g -> slot = NONE; generation = (generation + 1) % 8
            :: else -> b = NONE
            fi
        };
        if
        :: b != NONE -> close_batch(b)
        :: b == NONE
        fi
    :: b == NONE
    fi
}

inline sweep()
{
    close_slot();
    atomic { b = closed; closed = NONE };
    move_all(b);
    move_all(seen);
    resolve()
}

proctype sweeper()
{
    byte b, g, at, p, left, old, count;

    sweep();
#if SWEEPS > 1
    sweep();
#endif
    finished++
}

init {
    byte b, g, at, p, left, old, count;

    atomic {
        next[0] = 1; next[1] = 2; next[2] = 3; next[3] = NONE;
        spare = 0
    };
    atomic { run adder(1, FIRST); run adder(3, ADDS); run sweeper() };
    finished == 3;
    all_added = 1;
    sweep();
    assert(given[1] && (FIRST < 2 || given[2]) && given[3] && (ADDS < 2 || given[4]))
}
