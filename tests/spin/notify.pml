/* SPDX-License-Identifier: MIT
 *
 * Transitions are never lost: local frees against the thread that retires the superblock.
 *
 * One superblock of heap 0 with three blocks, all of them live, has just stopped being active. Thread 0 retires it: arms
 * the threshold and puts it on the list of full superblocks. Meanwhile both threads free blocks. Whoever's free brings
 * the count to the threshold must run the handler, which moves the superblock to the group of its count and arms the
 * next step.
 *
 * Claim: when all is quiet, the superblock is in the group of its count, or waits on its heap's pending stack.
 *
 * Broken on purpose:
 *   COMPARE_OUTSIDE  the free compares the superblock's count with the threshold after the commit, as both are by then
 *   PLAIN_ARM        the threshold is armed by a plain store after looking at the freelist
 *   ARM_LIST_ONLY    the arming section checks the freelist but not that it still runs on the superblock's heap
 *   NO_PUSH_ON_MOVED a slow path that lost its heap leaves without pushing the superblock
 *   NO_PUSH_ON_BUSY  a handler that finds the heap locked leaves without pushing the superblock
 *
 * Not broken, though it looks so: LOAD_OUTSIDE compares the count *it stored* with a threshold loaded after the commit.
 * Whoever changed the threshold in between did so in a section that saw the new freelist, and grouped by it.
 */
#include "common.pml"

#define UNLISTED 9

byte freelist = 0;
byte threshold = NEVER;
byte group = UNLISTED; /* the list it is on, by free count */
byte heap_lock = 0;
bit is_pending = 0;
byte x_remote = 0; /* blocks pushed by threads that were on another heap; collected elsewhere (remote.pml) */

/* Holding the lock: put the superblock on the list of its count and arm the next step. */
inline regroup(me)
{
    do
    :: w = freelist;
       group = COUNT(w);
#if defined(PLAIN_ARM)
       if
       :: freelist == w -> result = DONE
       :: freelist != w -> result = CHANGED
       fi;
       if
       :: result == DONE -> threshold = COUNT(w) + 1
       :: else
       fi;
#elif defined(ARM_LIST_ONLY)
       /* the same section without its first check: on another cid it excludes nobody */
       do
       :: {
              enter(me);
              if
              :: atomic { freelist != w -> result = CHANGED; leave(me) }
              :: freelist == w -> atomic { threshold = COUNT(w) + 1; result = DONE; leave(me) }
              fi;
              break
          } unless { restarted(me) }
       od;
#else
       rcs_compare_and_store(me, 0, freelist, w, threshold, COUNT(w) + 1, result);
#endif
       if
       :: result == DONE -> break
       :: result == CHANGED
       :: result == MOVED ->
#ifndef NO_PUSH_ON_MOVED
           is_pending = 1;
#endif
           break
       fi
    od;
    w = 0
}

inline handler(me)
{
    if
    :: atomic { heap_lock == 0 -> heap_lock = me + 1 };
       regroup(me);
       unlock(heap_lock, me)
    :: heap_lock != 0 ->
#ifndef NO_PUSH_ON_BUSY
       is_pending = 1
#else
       skip
#endif
    fi
}

inline free_block(me, block)
{
    do
    :: {
           enter(me);
           if
           :: atomic { heap_of_cid[cid_of[me]] != 0 -> leave(me); x_remote++; fire = 0; break }
           :: heap_of_cid[cid_of[me]] == 0
           fi;
           w = freelist;
#ifdef COMPARE_OUTSIDE
           atomic { freelist = LIST(block, COUNT(w) + 1); leave(me) };
           fire = (threshold == COUNT(freelist));
#elif defined(LOAD_OUTSIDE)
           atomic { freelist = LIST(block, COUNT(w) + 1); leave(me) };
           fire = (threshold == COUNT(w) + 1);
#else
           n = threshold;
           atomic { freelist = LIST(block, COUNT(w) + 1); leave(me); fire = (n == COUNT(w) + 1); n = 0 };
#endif
           break
       } unless { restarted(me) }
    od;
    w = 0;
    if
    :: fire -> fire = 0; handler(me)
    :: else
    fi
}

byte finished = 0;

proctype retirer(byte me)
{
    byte w, n;
    bit fire;
    mtype result;

    lock(heap_lock, me);
    regroup(me);
    unlock(heap_lock, me);
    free_block(me, 0);
    finished++
}

proctype freer(byte me)
{
    byte w, n;
    bit fire;
    mtype result;

    free_block(me, 1);
    free_block(me, 2);
    finished++
}

init {
    atomic { heap_of_cid[0] = 0; heap_of_cid[1] = 1; run retirer(0); run freer(1) };
    finished == 2;
    assert(heap_lock == 0);
    assert(COUNT(freelist) + x_remote == 3);
    assert(is_pending || group == COUNT(freelist));
    assert(is_pending || threshold == COUNT(freelist) + 1)
}
