/* SPDX-License-Identifier: MIT
 *
 * Changes of hands while sections run: a manager thread against two threads that allocate and free.
 *
 * Two cids, two heaps, one superblock of two blocks each, active and with all blocks free. The manager does one JOB:
 *   EXCHANGE  the two cids exchange their heaps
 *   PURGE     superblock 0 is taken offline, its list emptied, its blocks uncarved if all are free, and put back
 *   GIVE_UP   a thread of heap 0 retires superblock 0 and gives it up as it is, with a section of its own; then it is
 *             rebuilt
 *
 * Claims: no block is handed out while it is live, what is rebuilt while detached does not change meanwhile, and when
 * all is quiet each block is in one place.
 *
 * Broken on purpose:
 *   NO_FENCE       sections that began before the change run on
 *   NO_EMPTY       the exchange stores the new heaps at once instead of taking both cids off their heaps first
 *   KEEPS_ACTIVE   the purge leaves the superblock in the active slot
 *   OWNER_EARLY    the owner is put back before the list is whole
 *   PLAIN_GIVE_UP  the owner is cleared by a plain store after a look at the freelist
 *   GIVE_UP_MOVED  the giving-up section does not check that it still runs on the superblock's heap
 */
#include "common.pml"

#define BLOCKS 2
#define EMPTY_SUPERBLOCK 2
#define NEXT_OF(s, b) next_of[(s) * BLOCKS + (b)]
#define HOLD(s, b) hold[(s) * BLOCKS + (b)]

byte freelist[3];
byte owner[2];
byte active_of[HEAPS + 1]; /* the last is EMPTY_HEAP's */
byte x_remote[2];          /* blocks pushed, a set: linking them is remote.pml's and heap.pml's business */
bit uncarved[2];
byte heap_lock[HEAPS];
byte next_of[4];

#define NOBODY  0
#define PROGRAM 1
#define IN_FREE 2
#define IN_LIST 3
byte hold[4];
byte finished = 0;

#ifdef NO_FENCE
#define FENCE() skip
#else
#define FENCE() fence()
#endif

/* Nobody else touches superblock s: the freelist must stay as it was left. */
inline rebuild(s)
{
    w = freelist[s];
    d_step {
        if
        :: COUNT(w) == BLOCKS ->
            HOLD(s, 0) = NOBODY; HOLD(s, 1) = NOBODY;
            NEXT_OF(s, 0) = 0; NEXT_OF(s, 1) = 0;
            uncarved[s] = 1; new = 0
        :: COUNT(w) == 1 -> new = w; NEXT_OF(s, TOP(w)) = 0
        :: else -> new = 0
        fi
    };
#ifdef OWNER_EARLY
    owner[s] = 0;
#endif
    assert(freelist[s] == w);
    freelist[s] = new;
    assert(freelist[s] == new);
#ifndef OWNER_EARLY
    owner[s] = 0;
#endif
    w = 0; new = 0
}

proctype manager()
{
    byte w, new;
#if defined(EXCHANGE)
#ifndef NO_EMPTY
    heap_of_cid[0] = EMPTY_HEAP;
    heap_of_cid[1] = EMPTY_HEAP;
#else
    heap_of_cid[0] = 1;
    heap_of_cid[1] = 0;
#endif
    FENCE();
    heap_of_cid[0] = 1;
    heap_of_cid[1] = 0;
#elif defined(PURGE)
    lock(heap_lock[0], 2);
#ifndef KEEPS_ACTIVE
    active_of[0] = EMPTY_SUPERBLOCK;
#endif
    owner[0] = NO_HEAP;
    FENCE();
    rebuild(0);
    unlock(heap_lock[0], 2);
#endif
    finished++
}

/* A thread on heap 0, wherever it has been moved since, gives superblock 0 up without a fence. */
inline give_up()
{
    lock(heap_lock[0], me);
    rcs_compare_and_store(me, 0, active_of[0], 0, active_of[0], EMPTY_SUPERBLOCK, result);
    if
    :: result == DONE ->
        w = freelist[0];
#if defined(PLAIN_GIVE_UP)
        if
        :: freelist[0] == w -> result = DONE; owner[0] = NO_HEAP
        :: freelist[0] != w -> result = CHANGED
        fi;
#elif defined(GIVE_UP_MOVED)
        do
        :: {
               enter(me);
               if
               :: atomic { freelist[0] != w -> result = CHANGED; leave(me) }
               :: freelist[0] == w -> atomic { owner[0] = NO_HEAP; result = DONE; leave(me) }
               fi;
               break
           } unless { restarted(me) }
        od;
#else
        rcs_compare_and_store(me, 0, freelist[0], w, owner[0], NO_HEAP, result);
#endif
        w = 0;
        if
        :: result == DONE -> rebuild(0)
        :: else
        fi
    :: else
    fi;
    result = 0;
    unlock(heap_lock[0], me)
}

inline allocate()
{
    do
    :: {
           enter(me);
           h = heap_of_cid[cid_of[me]];
           s = active_of[h];
           w = freelist[s];
           if
           :: atomic { w == 0 -> leave(me) } /* the slow path: heap.pml */
           :: w != 0 ->
               new = NEXT_OF(s, TOP(w));
               atomic {
                   assert(HOLD(s, TOP(w)) == IN_LIST);
                   HOLD(s, TOP(w)) = PROGRAM;
                   freelist[s] = new;
                   leave(me)
               }
           fi;
           break
       } unless { atomic { aborted[me] -> aborted[me] = 0; s = 0; h = 0; w = 0; new = 0 } }
    od;
    atomic { s = 0; h = 0; w = 0; new = 0 }
}

inline release_block(s, b)
{
    do
    :: {
           enter(me);
           if
           :: atomic {
                  owner[s] != heap_of_cid[cid_of[me]] ->
                  leave(me); x_remote[s] = x_remote[s] | (1 << b); HOLD(s, b) = IN_LIST
              }
           :: owner[s] == heap_of_cid[cid_of[me]] ->
               w = freelist[s];
               NEXT_OF(s, b) = w;
               atomic { HOLD(s, b) = IN_LIST; freelist[s] = LIST(b, COUNT(w) + 1); leave(me) }
           fi;
           break
       } unless { atomic { aborted[me] -> aborted[me] = 0; w = 0 } }
    od;
    w = 0
}

proctype thread(byte me)
{
    byte h, s, w, new, operations;
    mtype result;

    operations = 2;
#ifdef GIVE_UP
    if
    :: me == 0 -> give_up(); operations = 1
    :: else
    fi;
#endif
    do
    :: operations > 0 ->
        operations--;
        if
        :: allocate()
        :: atomic { hold[0] == PROGRAM -> hold[0] = IN_FREE }; release_block(0, 0)
        :: atomic { hold[1] == PROGRAM -> hold[1] = IN_FREE }; release_block(0, 1)
        :: atomic { hold[2] == PROGRAM -> hold[2] = IN_FREE }; release_block(1, 0)
        :: atomic { hold[3] == PROGRAM -> hold[3] = IN_FREE }; release_block(1, 1)
        :: true
        fi
    :: operations == 0 -> break
    od;
    finished++
}

inline take_stock(s)
{
    seen = x_remote[s];
    w = freelist[s];
    do
    :: w != 0 ->
        assert(HOLD(s, TOP(w)) == IN_LIST && !(seen & (1 << TOP(w))));
        seen = seen | (1 << TOP(w));
        w = NEXT_OF(s, TOP(w))
    :: else -> break
    od;
    assert((seen & 1) == (HOLD(s, 0) == IN_LIST));
    assert(((seen >> 1) & 1) == (HOLD(s, 1) == IN_LIST));
    assert(!uncarved[s] || (HOLD(s, 0) == NOBODY && HOLD(s, 1) == NOBODY))
}

init {
    byte w, seen;

    atomic {
        heap_of_cid[0] = 0; heap_of_cid[1] = 1;
        active_of[0] = 0; active_of[1] = 1; active_of[EMPTY_HEAP] = EMPTY_SUPERBLOCK;
        owner[0] = 0; owner[1] = 1;
        freelist[0] = LIST(0, 2); next_of[0] = LIST(1, 1);
        freelist[1] = LIST(0, 2); next_of[2] = LIST(1, 1);
        hold[0] = IN_LIST; hold[1] = IN_LIST; hold[2] = IN_LIST; hold[3] = IN_LIST;
        run thread(0); run thread(1); run manager()
    };
    finished == 3;
    d_step { take_stock(0); take_stock(1) }
}
