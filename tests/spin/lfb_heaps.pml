/* SPDX-License-Identifier: MIT
 *
 * The lock-free bins of papers/engines/ with several heaps (lock_free_manager.c: retire). A block that a thread took from
 * one heap's bin is freed by a thread of another heap, whose manager gives it to the backend; a third thread, about to pop
 * in the first heap, may still read its link. So the manager waits for the bin to be at rest in every heap, after it has
 * collected the block.
 *
 * Heap 0 has the bin, three blocks and the lowest one; heap 1 has the manager, and a bin that is always at rest. What takes
 * a block and what keeps its count right is lfb.pml.
 *
 * Claim: nobody reads the link of a block that the backend has.
 *
 * Broken on purpose:
 *   OWN_ONLY      the manager looks at its own heap's bin alone
 *   QUIET_FIRST   it waits before it collects
 *   NOT_AFTER     it takes the bin to be at rest where pops have caught up with an earlier view of the reservations
 */
#define LOWEST  3
#define NIL     4
#define THREADS 3

mtype = { IN_BIN, PROGRAM, ON_FREE_LIST, COLLECTED, BACKEND };

mtype where[4] = IN_BIN;
byte link[4] = NIL;
byte first = 0, pops = 0, reserved = 0;
byte finished = 0;

/* A thread of heap 0 takes a block, if there is one; one of heap 1 frees it, or nobody does. */
proctype thread()
{
    byte f, n, p;
    bit got;

    atomic { got = reserved < LOWEST; reserved = reserved + got };
    do
    :: !got -> break
    :: got ->
        p = pops;
        f = first;
        d_step { assert(where[f] != BACKEND); n = link[f] };
        atomic {
            if
            :: first == f && pops == p -> first = n; pops++; where[f] = PROGRAM; break
            :: else
            fi
        }
    od;
    if
    :: got -> where[f] = ON_FREE_LIST
    :: true
    fi;
    finished++
}

inline wait_for_quiet()
{
#ifndef OWN_ONLY
    do
    :: true ->
#ifdef NOT_AFTER
        q = reserved;
        if
        :: pops == q -> break
        :: else
        fi
#else
        q = pops;
        if
        :: reserved == q -> break
        :: else
        fi
#endif
    od;
#endif
    skip
}

/* Of heap 1. */
proctype manager(byte times)
{
    byte b, q;

    do
    :: times > 0 ->
        times--;
#ifdef QUIET_FIRST
        wait_for_quiet();
#endif
        d_step {
            for (b : 0 .. 2) {
                where[b] = (where[b] == ON_FREE_LIST -> COLLECTED : where[b])
            }
        };
#ifndef QUIET_FIRST
        wait_for_quiet();
#endif
        d_step {
            for (b : 0 .. 2) {
                where[b] = (where[b] == COLLECTED -> BACKEND : where[b])
            }
        }
    :: times == 0 -> break
    od
}

init {
    link[0] = 1;
    link[1] = 2;
    link[2] = LOWEST;
    atomic { run thread(); run thread(); run thread(); run manager(2) };
    finished == THREADS
}
