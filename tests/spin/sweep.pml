/* SPDX-License-Identifier: MIT
 *
 * The hardened library's sweep: src/hardened/sweep.c.
 *
 * There is one block. Two threads move pointers to it between two pages of memory and their registers, drop them, free the block
 * (it is kept then) and take it again when it was given back. The manager sweeps: it collects what is kept, reads each page after
 * having asked to be told who writes to it, and reads what was written to, and registers, while the threads are stopped; in between
 * it lets others in. When it does not keep up a thread of the program sweeps, with the other one stopped for all of it. What
 * was collected and not marked is given back while threads go on.
 *
 * Claim: when the block is given back, and when it is handed out again, there is no pointer to it.
 *
 * Broken on purpose:
 *   NO_STOP       the last look is taken while the threads go on
 *   NO_REGISTERS  of what was in registers nothing is read
 *   NO_REREAD     what was written to meanwhile is not read again
 *   TRACK_LATE    a page is read before it is asked who writes to it
 *   COLLECT_LATE  what was kept by the end of the sweep is taken for what was kept at its beginning
 */
#define THREADS 2
#define PAGES   2

#ifndef MOVES
#define MOVES 2 /* of each thread */
#endif

mtype = { FREE, LIVE, KEPT, DUE };
mtype block = LIVE;
bit word[PAGES], reg[THREADS];
bit is_written[PAGES];
bit is_marked;
bit pass, is_stopped;
byte sweeps;
byte finished;

#define IS_POINTED_TO (word[0] || word[1] || reg[0] || reg[1])

/* A step of a thread of the program: none while it is stopped. */
#define go !is_stopped ->

/* ---- the program ---- */

inline load(t, i)    { d_step { go reg[t] = reg[t] || word[i] } }
inline store(t, i)   { d_step { go word[i] = reg[t]; is_written[i] = 1 } }
inline clear(t, i)   { d_step { go word[i] = 0; is_written[i] = 1 } }
inline forget(t)     { d_step { go reg[t] = 0 } }
inline free_it(t)    { d_step { go if :: reg[t] && block == LIVE -> block = KEPT :: else fi } }
inline take_it(t)
{
    d_step {
        go
        if
        :: block == FREE -> assert(!IS_POINTED_TO); block = LIVE; reg[t] = 1
        :: else
        fi
    }
}

inline move(t)
{
    if
    :: load(t, 0); clear(t, 0)
    :: load(t, 1); clear(t, 1)
    :: free_it(t)
    :: take_it(t)
    :: forget(t)
    fi;
    if
    :: store(t, 0)
    :: store(t, 1)
    :: true
    fi
}

/* ---- the sweep ---- */

inline collect() { if :: block == KEPT -> block = DUE :: else fi }

inline give_back()
{
    d_step {
        if
        :: block == DUE && !is_marked -> assert(!IS_POINTED_TO); block = FREE
        :: block == DUE && is_marked -> block = KEPT
        :: else
        fi
    }
}

inline read_page(i)
{
#ifdef TRACK_LATE
    is_marked = is_marked || word[i];
    is_written[i] = 0
#else
    is_written[i] = 0;
    is_marked = is_marked || word[i]
#endif
}

inline yield_pass() { pass = 0; atomic { !pass -> pass = 1 } }

inline look_at_last(i)
{
#ifndef NO_REREAD
    if
    :: is_written[i] -> is_marked = is_marked || word[i]
    :: else
    fi
#else
    skip
#endif
}

active proctype manager()
{
    byte own;

    atomic { !pass -> pass = 1 };
    sweeps++;
    own = sweeps;
    is_marked = 0;
    collect();
    read_page(0);
    yield_pass();
    read_page(1);
    yield_pass();
    if
    :: own != sweeps -> goto leave_pass /* it was overtaken */
    :: own == sweeps
    fi;
#ifndef NO_STOP
    is_stopped = 1;
#endif
    look_at_last(0);
    look_at_last(1);
#ifndef NO_REGISTERS
    is_marked = is_marked || reg[0];
    is_marked = is_marked || reg[1];
#endif
    is_stopped = 0;
#ifdef COLLECT_LATE
    collect();
#endif
    give_back();
leave_pass:
    pass = 0;
    finished++
}

/* By thread `t`, which holds the other up. */
inline sweep_here(t)
{
    if
    :: atomic { !pass -> pass = 1 };
       sweeps++;
       is_marked = 0;
       collect();
       d_step { is_marked = IS_POINTED_TO }; /* the other is stopped for all of it */
       give_back();
       pass = 0
    :: true
    fi
}

proctype thread(byte t)
{
    byte moves = 0;
    do
    :: moves < MOVES -> move(t); moves++
    :: moves == MOVES -> break
    od;
    if
    :: t == 0 -> sweep_here(t); move(t)
    :: t != 0
    fi;
    finished++
}

init {
    atomic {
        word[0] = 1;
        run thread(0);
        run thread(1)
    };
    finished == 3
}
