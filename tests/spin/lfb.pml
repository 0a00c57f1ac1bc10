/* SPDX-License-Identifier: MIT
 *
 * The lock-free bins of papers/engines/: lock_free_bins.c and lock_free_manager.c (thesis 6.3). One bin, two threads of the
 * program, the manager.
 *
 * A thread reserves a block by a count, takes the first one by a compare-and-swap of {first, pops}, and puts one back at
 * the front or on the free list. The manager appends behind the lowest block, which is his own and never in the count,
 * and gives blocks of the free list to the backend, where nobody may look at them any more; the backend may hand
 * the same block out again.
 *
 * Claims: no block has two owners; nobody reads the link of a block that the backend has; the lowest block is never taken;
 * a reservation that succeeded finds a block; at the end every block is somewhere, and the list is as long as counted.
 *
 * Broken on purpose:
 *   NO_POPS        the swap compares `first` alone (the thesis's listing: ABA)
 *   POPS_LATE      `pops` is read after `first`
 *   NO_QUIET       freed blocks go to the backend at once
 *   QUIET_SWAPPED  the manager reads `reserved` before `pops`
 *   RESERVE_ONCE   a reservation is good if a block was there before it
 *   COUNT_FIRST    a block is counted before it is linked
 *   LOWEST_COUNTED the first refill counts its lowest block
 */
#define BLOCKS  4
#define NIL     4
#define THREADS 2

mtype = { BACKEND, IN_BIN, PROGRAM, ON_FREE_LIST, MANAGER };

mtype where[BLOCKS] = BACKEND; /* not part of the program */
byte link[BLOCKS] = NIL;
byte first = NIL, last = NIL;
byte pops = 0, reserved = 0, added = 0;
bit freed[BLOCKS]; /* the free list; its order does not matter */
byte finished = 0;

inline count_added()
{
    added++
}

/* ---- the program ---- */

inline reserve()
{
    got = 0;
    if
    :: added <= reserved
    :: added > reserved ->
        atomic { mine = reserved; reserved++ };
#ifdef RESERVE_ONCE
        got = 1;
#else
        if
        :: added > mine -> got = 1
        :: else -> reserved--
        fi;
#endif
        mine = 0
    fi
}

inline pop()
{
    do
    :: true ->
#ifdef POPS_LATE
        f = first;
        p = pops;
#else
        p = pops;
        f = first;
#endif
        assert(f != NIL);
        d_step { assert(where[f] != BACKEND); n = link[f] };
        atomic {
            if
#ifdef NO_POPS
            :: first == f ->
#else
            :: first == f && pops == p ->
#endif
                assert(where[f] == IN_BIN && f != last);
                where[f] = PROGRAM;
                first = n;
                pops++;
                break
            :: else
            fi
        }
    od;
    p = 0; n = 0
}

inline push(f)
{
    n = first;
    where[f] = IN_BIN;
#ifdef COUNT_FIRST
    count_added();
#endif
    do
    :: true ->
        link[f] = n;
        atomic {
            if
            :: first == n -> first = f; break
            :: else -> n = first
            fi
        }
    od;
#ifndef COUNT_FIRST
    count_added();
#endif
    n = 0
}

/* It may keep one block while it takes others. */
proctype thread(byte times)
{
    byte kept = NIL, f, n, p, mine;
    bit got;

    do
    :: times > 0 ->
        times--;
        reserve();
        if
        :: got ->
            pop();
            if
            :: kept == NIL -> kept = f
            :: push(f)
            :: d_step { where[f] = ON_FREE_LIST; freed[f] = 1 }
            fi
        :: !got
        fi;
        f = 0; got = 0;
        if
        :: kept != NIL -> push(kept); kept = NIL
        :: true
        fi
    :: times == 0 -> break
    od;
    finished++
}

/* ---- the manager ---- */

inline block_from_backend()
{
    if
    :: d_step { where[0] == BACKEND -> where[0] = MANAGER; b = 0 }
    :: d_step { where[1] == BACKEND -> where[1] = MANAGER; b = 1 }
    :: d_step { where[2] == BACKEND -> where[2] = MANAGER; b = 2 }
    :: d_step { where[3] == BACKEND -> where[3] = MANAGER; b = 3 }
    :: d_step { where[0] != BACKEND && where[1] != BACKEND && where[2] != BACKEND && where[3] != BACKEND -> b = NIL }
    fi
}

inline refill()
{
    block_from_backend();
    if
    :: b != NIL ->
        link[b] = NIL;
        where[b] = IN_BIN;
        if
        :: last == NIL ->
            first = b;
#ifdef LOWEST_COUNTED
            count_added();
#endif
            last = b
        :: last != NIL ->
#ifdef COUNT_FIRST
            count_added();
#endif
            link[last] = b;
            last = b;
#ifndef COUNT_FIRST
            count_added()
#else
            skip
#endif
        fi
    :: b == NIL
    fi;
    b = 0
}

inline is_quiet()
{
#ifdef QUIET_SWAPPED
    q = reserved;
    quiet = pops == q;
#else
    q = pops;
    quiet = reserved == q;
#endif
    q = 0
}

/* Collects what is on the free list now, then waits for the bin to be quiet. */
inline retire()
{
    d_step {
        taken[0] = freed[0]; taken[1] = freed[1]; taken[2] = freed[2]; taken[3] = freed[3];
        freed[0] = 0; freed[1] = 0; freed[2] = 0; freed[3] = 0
    };
    quiet = 0;
#ifndef NO_QUIET
    do
    :: !quiet -> is_quiet()
    :: quiet -> break
    od;
#endif
    skip;
    d_step {
        b = 0;
        do
        :: b < BLOCKS && taken[b] -> assert(where[b] == ON_FREE_LIST); where[b] = BACKEND; taken[b] = 0; b++
        :: b < BLOCKS && !taken[b] -> b++
        :: b == BLOCKS -> break
        od;
        b = 0
    };
    quiet = 0
}

/* The first refill meets nobody: threads have not seen a block yet. */
proctype manager(byte times)
{
    byte b, q;
    bit quiet;
    bit taken[BLOCKS];

    atomic { refill() };
    atomic { refill() };
    atomic { refill() };
    atomic { refill() };
    do
    :: times > 0 ->
        times--;
        if
        :: refill()
        :: retire()
        fi
    :: times == 0 -> break
    od;
    finished++
}

init {
    byte n, b;

    atomic { run thread(1); run thread(2); run manager(1) };
    finished == THREADS + 1;
    d_step {
        b = first;
        do
        :: b != NIL -> assert(where[b] == IN_BIN); n++; b = link[b]
        :: b == NIL -> break
        od;
        assert(pops == reserved);
        assert(last == NIL && n == 0 || n == added - pops + 1)
    }
}
