/* SPDX-License-Identifier: MIT
 *
 * fork: the child has the memory as it was at one instant and only the thread that forked.
 *
 * A superblock of heap 0 with three live blocks is listed as full. Thread 1 frees two of them, from whichever heap it
 * runs on, and relists the superblock when notified. Thread 0 forks at any instant and takes no lock before: thread 1
 * may be anywhere in a section, between a commit and its handler, between consuming ARMED and pushing, or half-way
 * through relisting, under the heap's lock. From there on the model is the child: thread 1 is gone. The child recovers
 * before it does anything else (clears every mark "pending", empties the pending stacks, makes the lists anew if their
 * lock was held, relists every superblock it finds due), then frees what is left.
 *
 * Claims: the child finds every free block once, and the superblock listed by its true count, armed; only a block that
 * thread 1 was about to free, and a chain it had taken and not yet joined, stay live for ever.
 *
 * Broken on purpose:
 *   TRUSTS_MARKS      the child trusts the marks, pending stacks and notifications it finds
 *   TRUSTS_LISTS  the child trusts lists whose lock was held
 *   TWO_STORES    free commits the count and the top block by two stores
 */
#include "common.pml"

#define BLOCKS   3
#define UNLISTED 9

byte freelist = 0;
byte threshold = 1;
byte x_remote = 0; /* a list, linked from an empty one */
bit x_armed = 1;
bit x_is_pending = 0;
bit pending = 0;
byte group = 0;
byte heap_lock = 0;
byte next_of[BLOCKS];
bit forked = 0;
byte finished = 0;
byte in_hand = 0;     /* not part of the program: blocks of a chain that thread 1 has taken */

#define PROGRAM 1
#define IN_FREE 2
#define IN_LIST 3
byte hold[BLOCKS] = PROGRAM;

inline push_pending()
{
    if
    :: atomic { !x_is_pending -> x_is_pending = 1 }; pending = 1
    :: x_is_pending
    fi
}

/* Prepends `list` to `onto`: see heap.pml. */
inline join(list, onto, whole)
{
    atomic {
        at = TOP(list);
        left = COUNT(list);
        do
        :: left > 1 -> next = TOP(next_of[at]); next_of[at] = LIST(next, COUNT(onto) + left - 1); at = next; left--
        :: left == 1 -> next_of[at] = onto; left = 0
        :: left == 0 -> break
        od;
        if
        :: COUNT(list) > 0 -> whole = LIST(TOP(list), COUNT(onto) + COUNT(list))
        :: else -> whole = onto
        fi;
        at = 0; next = 0
    }
}

inline relist()
{
    do
    :: result = DONE;
       if
       :: atomic { x_remote != 0 -> chain = x_remote; x_remote = 0; x_armed = 0; in_hand = COUNT(chain) };
          do
          :: w = freelist;
             join(chain, w, joined);
             rcs_compare_and_store(me, 0, freelist, w, freelist, joined, result);
             if
             :: result == DONE -> atomic { chain = 0; in_hand = 0 }; break
             :: result == CHANGED
             :: result == MOVED -> join(chain, 0, chain); break
             fi
          od;
          joined = 0;
          do
          :: atomic { result != MOVED || chain == 0 -> break }
          :: atomic { result == MOVED && chain != 0 && x_remote == 0 -> x_remote = chain; x_armed = 0; chain = 0; in_hand = 0 }
          :: atomic { result == MOVED && chain != 0 && x_remote != 0 -> w = x_remote; x_remote = 0; x_armed = 0 };
             atomic { in_hand = in_hand + COUNT(w); join(chain, w, chain) }
          od
       :: x_remote == 0
       fi;
       if
       :: result == DONE ->
           w = freelist;
           rcs_compare_and_store(me, 0, freelist, w, threshold, COUNT(w) + 1, result);
           if
           :: result == DONE ->
               group = UNLISTED;
               group = COUNT(w);
               if
               :: atomic { x_remote == 0 -> x_armed = 1 }; w = 0; break
               :: x_remote != 0
               fi
           :: else
           fi
       :: else
       fi;
       w = 0;
       if
       :: result == MOVED -> push_pending(); break
       :: else
       fi
    od;
    result = 0
}

/* One step, notified: 1, consumed ARMED: 2. */
inline free_block(b)
{
    hold[b] = IN_FREE;
    do
    :: {
           enter(me);
           if
           :: atomic { heap_of_cid[cid_of[me]] != 0 -> leave(me); o = 3 }
           :: heap_of_cid[cid_of[me]] == 0 ->
               w = freelist;
               n = threshold;
               next_of[b] = w;
#ifdef TWO_STORES
               freelist = LIST(TOP(w), COUNT(w) + 1);
#endif
               atomic { freelist = LIST(b, COUNT(w) + 1); hold[b] = IN_LIST; leave(me); o = (n == COUNT(w) + 1) }
           fi;
           break
       } unless { atomic { aborted[me] -> aborted[me] = 0; w = 0; n = 0 } }
    od;
    atomic { w = 0; n = 0 };
    if
    :: o == 3 ->
        atomic {
            next_of[b] = x_remote;
            x_remote = LIST(b, COUNT(x_remote) + 1);
            hold[b] = IN_LIST;
            o = (x_armed -> 2 : 0);
            x_armed = 0
        }
    :: else
    fi;
    if
    :: o == 0
    :: o == 1 ->
        if
        :: atomic { heap_lock == 0 -> heap_lock = me + 1 }; relist(); unlock(heap_lock, me)
        :: heap_lock != 0 -> push_pending()
        fi
    :: o == 2 -> push_pending()
    fi;
    o = 0
}

proctype other(byte me)
{
    byte w, n, o, chain, joined, at, left, next;
    mtype result;

    {
        free_block(0);
        free_block(1)
    } unless { forked }
}

byte lost = 0;
bit was_locked = 0;

proctype forker(byte me)
{
    byte w, n, o, chain, joined, at, left, next;
    mtype result;

    d_step {
        forked = 1;
        lost = in_hand;
        was_locked = heap_lock != 0;
        heap_lock = 0;
        if
        :: cid_of[1] != NOWHERE -> leave(1)
        :: else
        fi
    };
#ifndef TRUSTS_MARKS
    /* the child: one thread, plain stores will do */
    d_step {
#ifndef TRUSTS_LISTS
        if
        :: was_locked -> group = COUNT(freelist)
        :: else
        fi;
#endif
        x_is_pending = 0;
        pending = 0;
        if
        :: was_locked || x_remote != 0 || !x_armed || COUNT(freelist) >= threshold ->
            chain = x_remote; x_remote = 0;
            w = freelist;
            join(chain, w, joined);
            freelist = joined;
#ifdef TRUSTS_LISTS
            if
            :: group != UNLISTED -> group = COUNT(joined)
            :: else
            fi;
#else
            group = COUNT(joined);
#endif
            threshold = COUNT(joined) + 1;
            x_armed = 1;
            w = 0; chain = 0; joined = 0
        :: else
        fi;
        assert(group == COUNT(freelist))
    };
#endif
    free_block(2);
    if
    :: hold[1] == PROGRAM -> free_block(1)
    :: else
    fi;
    finished = 1
}

init {
    byte w, n, seen;

    atomic { heap_of_cid[0] = 0; heap_of_cid[1] = 1; run forker(0); run other(1) };
    finished;
    d_step {
        w = freelist;
        do
        :: w != 0 ->
            assert(hold[TOP(w)] == IN_LIST && !(seen & (1 << TOP(w))));
            seen = seen | (1 << TOP(w)); n++; w = next_of[TOP(w)]
        :: else -> break
        od;
        assert(n == COUNT(freelist));
        w = x_remote;
        do
        :: w != 0 ->
            assert(hold[TOP(w)] == IN_LIST && !(seen & (1 << TOP(w))));
            seen = seen | (1 << TOP(w)); n++; w = next_of[TOP(w)]
        :: else -> break
        od;
        assert(n <= (hold[0] == IN_LIST) + (hold[1] == IN_LIST) + (hold[2] == IN_LIST));
        assert(n + lost >= (hold[0] == IN_LIST) + (hold[1] == IN_LIST) + (hold[2] == IN_LIST));
        assert(pending || group == COUNT(freelist) && threshold == COUNT(freelist) + 1 && x_remote == 0 && x_armed);
        assert(x_is_pending == pending && heap_lock == 0)
    }
}
