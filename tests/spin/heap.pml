/* SPDX-License-Identifier: MIT
 *
 * The whole life of a superblock: malloc, free, refill, retire, activate, remote frees, notify handlers, giving up.
 *
 * Two threads, two cids with a heap each, two superblocks of two blocks each, every next pointer written out. Threads
 * allocate, and free any live block whoever allocated it, on whichever cid they happen to run. At first superblock 0 is
 * active in heap 0 and full, superblock 1 is listed in heap 0 and half full.
 *
 * With PURGE a third thread takes each superblock offline, and gives it back or puts it online again; with MERGE it makes
 * everything heap 0 has heap 1's. It has no cid of its own.
 *
 * Claims: no block is handed out while it is live; no pop ever finds a damaged list; lists are edited under the heap's
 * lock only; nothing deadlocks; and when all is quiet each block is in exactly one place, and each superblock is active,
 * or listed by its true count with its remote list empty and armed, or on a pending stack.
 *
 * Broken on purpose:
 *   RETURN_RELINKED   a remote chain that was joined to a list and could not be published goes back as it is, its nexts
 *                     leading into that list
 *   NOT_REARMED       relisting leaves the remote list unarmed
 *   RELIST_ACTIVE     relisting what is pending does not look whether the superblock has become active again
 *   NO_PUSH           a slow path that lost its heap does not push the superblock it had in hand
 *   NO_FENCE          (PURGE, MERGE) sections that began before the superblock was taken offline run on
 *   ARM_BEFORE_OWNER  (PURGE, MERGE) the remote list is armed before the owner is stored
 *   NEVER_LATE        a listed superblock is activated before its notifications are disarmed, and not disarmed after
 */
#include "common.pml"

#ifndef OPS0
#define OPS0 2
#endif
#ifndef OPS1
#define OPS1 2
#endif

#define SUPERBLOCKS 2
#define BLOCKS      2
#define EMPTY_SUPERBLOCK SUPERBLOCKS
#define UNLISTED    9

#define NEXT_OF(s, b) next_of[(s) * BLOCKS + (b)]
#define HOLD(s, b) hold[(s) * BLOCKS + (b)]

byte freelist[SUPERBLOCKS + 1];
byte owner[SUPERBLOCKS];
byte threshold[SUPERBLOCKS];
byte x_remote[SUPERBLOCKS]; /* like the local list, linked from an empty one */
bit x_armed[SUPERBLOCKS];   /* the ARMED bit of the same machine word: read and written together with it */
bit uncarved[SUPERBLOCKS];
bit is_span[SUPERBLOCKS];   /* its memory is among the free spans */
bit x_is_pending[SUPERBLOCKS];
byte group[SUPERBLOCKS];    /* list it is on, by free count */
byte active_of[HEAPS];
byte pending[HEAPS];        /* a set: bit s */
byte heap_lock[HEAPS];
byte next_of[SUPERBLOCKS * BLOCKS];

/* Not part of the program: who holds a block. */
#define NOBODY  0
#define PROGRAM 1
#define IN_FREE 2
#define IN_LIST 3 /* carved and free, local or remote */
byte hold[SUPERBLOCKS * BLOCKS];

#define CHECK_LOCKED(h) assert(heap_lock[h] == me + 1)

/* ---- the pending stack ---- */

inline push_pending(h, s)
{
    if
    :: atomic { !x_is_pending[s] -> x_is_pending[s] = 1 };
       pending[h] = pending[h] | (1 << (s))
    :: x_is_pending[s]
    fi
}

/* ---- remote ---- */

/* Prepends `chain` to the list `onto`, rewriting every next: nobody else looks at these blocks. */
inline join(j, list, onto, whole)
{
    atomic {
        at = TOP(list);
        left = COUNT(list);
        do
        :: left > 1 ->
            next = TOP(NEXT_OF(j, at));
            NEXT_OF(j, at) = LIST(next, COUNT(onto) + left - 1);
            at = next;
            left--
        :: left == 1 -> NEXT_OF(j, at) = onto; left = 0
        :: left == 0 -> break
        od;
        if
        :: COUNT(list) > 0 -> whole = LIST(TOP(list), COUNT(onto) + COUNT(list))
        :: else -> whole = onto
        fi;
        at = 0; next = 0
    }
}

inline remote_return(s)
{
#ifndef RETURN_RELINKED
    join(s, chain, 0, chain);
#endif
    do
    :: atomic { x_remote[s] == 0 -> x_remote[s] = chain; x_armed[s] = 0; chain = 0; break }
    :: atomic { x_remote[s] != 0 -> w = x_remote[s]; x_remote[s] = 0; x_armed[s] = 0 };
       join(s, chain, w, chain);
       w = 0
    od
}

inline collect(h, s)
{
    result = DONE;
    if
    :: x_remote[s] == 0
    :: x_remote[s] != 0 ->
        atomic { chain = x_remote[s]; x_remote[s] = 0; x_armed[s] = 0 };
        do
        :: w = freelist[s];
           join(s, chain, w, joined);
           rcs_compare_and_store(me, h, freelist[s], w, freelist[s], joined, result);
           atomic { w = 0; joined = 0 };
           if
           :: result == DONE -> chain = 0; break
           :: result == CHANGED
           :: result == MOVED -> remote_return(s); break
           fi
        od
    fi
}

/* ---- relisting ---- */

inline take_off_list(h, s)
{
    CHECK_LOCKED(h);
    group[s] = UNLISTED
}

/* Exclusive and entirely free: uncarved, and any heap's to take. */
inline give_span(s)
{
    d_step {
        assert(x_remote[s] == 0);
        assert(HOLD(s, 0) == IN_LIST && HOLD(s, 1) == IN_LIST);
        HOLD(s, 0) = NOBODY; HOLD(s, 1) = NOBODY;
        NEXT_OF(s, 0) = 0; NEXT_OF(s, 1) = 0;
        freelist[s] = 0; uncarved[s] = 1; threshold[s] = NEVER; x_armed[s] = 0; is_span[s] = 1
    }
}

inline release(h, s)
{
    /* an entirely free superblock may be surplus */
    if
    :: true
    :: COUNT(w) == BLOCKS ->
        rcs_compare_and_store(me, h, freelist[s], w, owner[s], NO_HEAP, result);
        if
        :: result == DONE ->
            take_off_list(h, s);
            give_span(s)
        :: else
        fi
    fi
}

inline relist(h, s)
{
    do
    :: collect(h, s);
       if
       :: result == DONE ->
           w = freelist[s];
           rcs_compare_and_store(me, h, freelist[s], w, threshold[s], COUNT(w) + 1, result);
           if
           :: result == DONE ->
               CHECK_LOCKED(h);
               group[s] = COUNT(w);
#ifdef NOT_REARMED
               release(h, s); w = 0;
               break
#else
               if
               :: atomic { x_remote[s] == 0 -> x_armed[s] = 1 }; release(h, s); w = 0; break
               :: x_remote[s] != 0 -> w = 0
               fi
#endif
           :: else -> w = 0
           fi
       :: else
       fi;
       if
       :: result == MOVED ->
#ifndef NO_PUSH
           push_pending(h, s);
#endif
           break
       :: else
       fi
    od
}

inline relist_pending(h, s)
{
    o = owner[s];
    if
    :: o == h ->
#ifdef RELIST_ACTIVE
        relist(h, s)
#else
        if
        :: active_of[h] != s -> relist(h, s)
        :: active_of[h] == s
        fi
#endif
    :: o != h && o != NO_HEAP -> push_pending(o, s)
    :: o == NO_HEAP
    fi;
    o = 0
}

inline flush(h)
{
    atomic { taken = pending[h]; pending[h] = 0 };
    do
    :: taken & 1 -> taken = taken & 2; x_is_pending[0] = 0; relist_pending(h, 0)
    :: taken & 2 -> taken = taken & 1; x_is_pending[1] = 0; relist_pending(h, 1)
    :: taken == 0 -> break
    od
}

/* ---- refill ---- */

/* Gives the superblock, active or about to be, a free block. */
inline restock(h, s)
{
    result = DONE;
    if
    :: freelist[s] != 0
    :: freelist[s] == 0 ->
        if
        :: x_remote[s] != 0 ->
            atomic { chain = x_remote[s]; x_remote[s] = 0; x_armed[s] = 0 };
            /* linked from an empty list, the chain is a list as it stands */
            rcs_compare_and_store(me, h, freelist[s], 0, freelist[s], chain, result);
            if
            :: result == DONE -> chain = 0
            :: else -> remote_return(s)
            fi
        :: x_remote[s] == 0 && uncarved[s] ->
            d_step { NEXT_OF(s, 0) = 0; NEXT_OF(s, 1) = LIST(0, 1) };
            rcs_compare_and_store(me, h, freelist[s], 0, freelist[s], LIST(1, 2), result);
            if
            :: result == DONE -> d_step { uncarved[s] = 0; HOLD(s, 0) = IN_LIST; HOLD(s, 1) = IN_LIST }
            :: else
            fi
        :: x_remote[s] == 0 && !uncarved[s] -> result = 0
        fi
    fi
}

/* Under the lock of the heap the thread was last seen on. ok: try to pop again. */
inline refill(h)
{
    old = active_of[h];
    result = 0;
    if
    :: old != EMPTY_SUPERBLOCK -> restock(h, old)
    :: else
    fi;
    if
    :: result != 0 -> ok = 1; result = 0 /* there is a block, or the thread was moved: either way, again */
    :: else ->
        flush(h);
        if
        :: atomic { owner[0] == h && group[0] != UNLISTED && (freelist[0] != 0 || x_remote[0] != 0) -> s = 0 }
        :: atomic { owner[1] == h && group[1] != UNLISTED && (freelist[1] != 0 || x_remote[1] != 0) -> s = 1 }
        /* fresh memory: detached, for whoever takes it from the span lists */
        :: atomic { is_span[0] -> is_span[0] = 0; s = 0; owner[0] = h }
        :: atomic { is_span[1] -> is_span[1] = 0; s = 1; owner[1] = h }
        :: else -> s = EMPTY_SUPERBLOCK
        fi;
        if
        :: s == EMPTY_SUPERBLOCK -> ok = 0
        :: else ->
            ok = 1;
#ifndef NEVER_LATE
            do
            :: w = freelist[s];
               rcs_compare_and_store(me, h, freelist[s], w, threshold[s], NEVER, result);
               w = 0;
               if
               :: result != CHANGED -> break
               :: else
               fi
            od;
#else
            result = DONE;
#endif
            if
            :: result == DONE ->
                if
                :: group[s] != UNLISTED -> take_off_list(h, s)
                :: else
                fi;
                restock(h, s)
            :: else
            fi;
            if
            :: result == DONE || result == CHANGED ->
                rcs_compare_and_store(me, h, active_of[h], old, active_of[h], s, result)
            :: else
            fi;
            if
            :: result == DONE ->
                if
                :: old != EMPTY_SUPERBLOCK -> relist(h, old)
                :: else
                fi
            :: result != DONE && group[s] != UNLISTED /* nothing has happened to it: it stays where it is */
            :: result != DONE && group[s] == UNLISTED ->
#ifndef NO_PUSH
                push_pending(h, s)
#else
                skip
#endif
            fi
        fi;
        atomic { s = 0; result = 0 }
    fi;
    old = 0
}

/* ---- malloc and free ---- */

inline allocate()
{
    do
    :: do
       :: {
              enter(me);
              h = heap_of_cid[cid_of[me]];
              s = active_of[h];
              w = freelist[s];
              if
              :: atomic { w == 0 -> leave(me); ok = 0; s = 0 }
              :: w != 0 ->
                  joined = NEXT_OF(s, TOP(w));
                  atomic {
                      assert(COUNT(joined) + 1 == COUNT(w)); /* else the list is damaged */
                      assert(HOLD(s, TOP(w)) == IN_LIST);
                      HOLD(s, TOP(w)) = PROGRAM;
                      freelist[s] = joined;
                      leave(me);
                      ok = 1; s = 0; h = 0; w = 0; joined = 0
                  }
              fi;
              break
          } unless { atomic { aborted[me] -> aborted[me] = 0; s = 0; h = 0; w = 0; joined = 0 } }
       od;
       if
       :: ok -> ok = 0; break
       :: else ->
           lock(heap_lock[h], me);
           refill(h);
           unlock(heap_lock[h], me);
           h = 0;
           if
           :: ok -> ok = 0
           :: else -> break /* no memory */
           fi
       fi
    od
}

inline release_block(s, b)
{
    do
    :: {
           enter(me);
           if
           :: atomic { owner[s] != heap_of_cid[cid_of[me]] -> leave(me); o = 2 }
           :: owner[s] == heap_of_cid[cid_of[me]] ->
               w = freelist[s];
               n = threshold[s];
               NEXT_OF(s, b) = w;
               atomic {
                   assert(HOLD(s, b) == IN_FREE);
                   HOLD(s, b) = IN_LIST;
                   freelist[s] = LIST(b, COUNT(w) + 1);
                   leave(me);
                   o = (n == COUNT(w) + 1)
               }
           fi;
           break
       } unless { atomic { aborted[me] -> aborted[me] = 0; w = 0; n = 0 } }
    od;
    atomic { w = 0; n = 0 };
    if
    :: o == 0
    :: o == 1 -> /* notified */
        h = owner[s];
        o = 0;
        if
        :: h == NO_HEAP
        :: h != NO_HEAP ->
            if
            :: atomic { heap_lock[h] == 0 -> heap_lock[h] = me + 1 };
               relist_pending(h, s);
               unlock(heap_lock[h], me)
            :: heap_lock[h] != 0 -> push_pending(h, s)
            fi
        fi
    :: o == 2 -> /* another heap's */
        atomic {
            assert(HOLD(s, b) == IN_FREE);
            HOLD(s, b) = IN_LIST;
            NEXT_OF(s, b) = x_remote[s];
            x_remote[s] = LIST(b, COUNT(x_remote[s]) + 1);
            o = x_armed[s];
            x_armed[s] = 0
        };
        if
        :: o == 1 ->
            h = owner[s];
            if
            :: h != NO_HEAP -> push_pending(h, s)
            :: else
            fi
        :: else
        fi
    fi;
    atomic { o = 0; h = 0; result = 0 }
}

byte finished = 0;

proctype thread(byte me; byte operations)
{
    byte h, s, w, n, o, old, chain, joined, at, left, next, taken;
    bit ok;
    mtype result;

    do
    :: operations > 0 ->
        operations--;
        if
        :: allocate()
        :: atomic { hold[0] == PROGRAM -> hold[0] = IN_FREE }; release_block(0, 0)
        :: atomic { hold[1] == PROGRAM -> hold[1] = IN_FREE }; release_block(0, 1)
        :: atomic { hold[2] == PROGRAM -> hold[2] = IN_FREE }; release_block(1, 0)
        :: atomic { hold[3] == PROGRAM -> hold[3] = IN_FREE }; release_block(1, 1)
        fi
    :: operations == 0 -> break
    od;
    finished++
}

/* ---- a thread without a cid: the manager ---- */

/* From its heap's lists or active slot; sections may still be running on it until the fence. */
inline take_offline(h, s)
{
    CHECK_LOCKED(h);
    if
    :: active_of[h] == s -> active_of[h] = EMPTY_SUPERBLOCK
    :: active_of[h] != s -> group[s] = UNLISTED
    fi;
    owner[s] = NO_HEAP
}

/* Of a detached superblock: everything by plain stores. Then it is heap h's, who may have to look again. */
inline relist_detached(h, s)
{
    CHECK_LOCKED(h);
    atomic { chain = x_remote[s]; x_remote[s] = 0; x_armed[s] = 0 };
    w = freelist[s];
    join(s, chain, w, joined);
    assert(freelist[s] == w);
    freelist[s] = joined;
    d_step { threshold[s] = COUNT(joined) + 1; group[s] = COUNT(joined); chain = 0; w = 0; joined = 0 };
#ifdef ARM_BEFORE_OWNER
    ok = 0;
    if
    :: atomic { x_remote[s] == 0 -> x_armed[s] = 1; ok = 1 }
    :: x_remote[s] != 0
    fi;
    owner[s] = h;
#else
    owner[s] = h;
    ok = 0;
    if
    :: atomic { x_remote[s] == 0 -> x_armed[s] = 1; ok = 1 }
    :: x_remote[s] != 0
    fi;
#endif
    if
    :: !ok -> push_pending(h, s)
    :: ok -> ok = 0
    fi
}

#ifdef NO_FENCE
#define FENCE() skip
#else
#define FENCE() fence()
#endif

/* Purge: offline under the lock, fence and work without it, online under the lock again. */
inline purge(s)
{
    h = owner[s];
    if
    :: h != NO_HEAP ->
        lock(heap_lock[h], me);
        ok = 0;
        if
        :: owner[s] == h -> take_offline(h, s); ok = 1
        :: owner[s] != h
        fi;
        unlock(heap_lock[h], me);
        if
        :: ok ->
            ok = 0;
            FENCE();
            w = freelist[s];
            if
            :: COUNT(w) == BLOCKS -> give_span(s); w = 0
            :: else -> w = 0; lock(heap_lock[h], me); relist_detached(h, s); unlock(heap_lock[h], me)
            fi
        :: else
        fi
    :: h == NO_HEAP
    fi;
    h = 0
}

/* Merge: everything heap 0 has becomes heap 1's. The second lock is only tried. */
inline merge()
{
    lock(heap_lock[1], me);
    if
    :: atomic { heap_lock[0] == 0 -> heap_lock[0] = me + 1 };
       if
       :: owner[0] == 0 && (active_of[0] == 0 || group[0] != UNLISTED) -> take_offline(0, 0); n = 1
       :: else
       fi;
       if
       :: owner[1] == 0 && (active_of[0] == 1 || group[1] != UNLISTED) -> take_offline(0, 1); n = n + 2
       :: else
       fi;
       unlock(heap_lock[0], me);
       FENCE();
       if
       :: n & 1 -> relist_detached(1, 0)
       :: else
       fi;
       if
       :: n & 2 -> relist_detached(1, 1)
       :: else
       fi;
       n = 0
    :: heap_lock[0] != 0
    fi;
    unlock(heap_lock[1], me)
}

proctype manager(byte me)
{
    byte h, w, n, chain, joined, at, left, next;
    bit ok;

#if defined(PURGE)
    purge(0);
    purge(1);
#elif defined(MERGE)
    merge();
#endif
    finished++
}

/* Walks superblock s: each block it says is free is free once, and all free blocks are found. */
inline take_stock(s)
{
    n = 0; seen = 0;
    w = freelist[s];
    do
    :: w != 0 ->
        assert(HOLD(s, TOP(w)) == IN_LIST && !(seen & (1 << TOP(w))));
        seen = seen | (1 << TOP(w));
        n++;
        w = NEXT_OF(s, TOP(w))
    :: else -> break
    od;
    assert(n == COUNT(freelist[s]));
    w = x_remote[s];
    do
    :: w != 0 ->
        assert(HOLD(s, TOP(w)) == IN_LIST && !(seen & (1 << TOP(w))));
        seen = seen | (1 << TOP(w));
        n++;
        w = NEXT_OF(s, TOP(w))
    :: else -> break
    od;
    assert(n == (HOLD(s, 0) == IN_LIST) + (HOLD(s, 1) == IN_LIST));
    /* it can be found */
    assert((owner[s] == NO_HEAP) == is_span[s]);
    if
    :: owner[s] != NO_HEAP && active_of[owner[s]] != s && !x_is_pending[s] ->
        assert(group[s] == COUNT(freelist[s]));
        assert(threshold[s] == COUNT(freelist[s]) + 1);
        assert(x_remote[s] == 0 && x_armed[s])
    :: owner[s] != NO_HEAP && active_of[owner[s]] == s ->
        assert(group[s] == UNLISTED && threshold[s] == NEVER)
    :: else
    fi;
    assert(x_is_pending[s] == (((pending[0] | pending[1]) >> s) & 1))
}

init {
    byte w, n, seen;

    atomic {
        heap_of_cid[0] = 0; heap_of_cid[1] = 1;
        owner[0] = 0; active_of[0] = 0; group[0] = UNLISTED; threshold[0] = NEVER;
        hold[0] = PROGRAM; hold[1] = PROGRAM;
        owner[1] = 0; group[1] = 1; threshold[1] = 2; x_armed[1] = 1;
        freelist[1] = LIST(0, 1); hold[2] = IN_LIST; hold[3] = PROGRAM;
        active_of[1] = EMPTY_SUPERBLOCK;
        run thread(0, OPS0); run thread(1, OPS1); run manager(2)
    };
    finished == 3;
    d_step {
        assert(!heap_lock[0] && !heap_lock[1]);
        take_stock(0);
        take_stock(1)
    }
}
