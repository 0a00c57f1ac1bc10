/* SPDX-License-Identifier: MIT
 *
 * An outbox: sections add blocks to a chain, a thread of the heap takes the chain by a section under the heap's lock, and a
 * pass, which runs no sections, closes the outbox, fences, takes what there is and opens it again.
 *
 * The chain is a set of blocks. Claims: a block arrives once, and when all is quiet it has arrived or is in the chain.
 *
 * Broken on purpose:
 *   NO_FENCE   the pass takes the chain without restarting the sections that began before it closed the outbox
 *   NO_LOCK    a thread takes the chain without the lock
 *   NO_RECHECK it looks whether the outbox is open before it has the lock
 *   PLAIN_TAKE it takes the chain by two plain accesses instead of a section
 *   LATE_TAKE  a section that made a batch leaves the chain there, and it is emptied afterwards
 */
#include "common.pml"

#define PASS 2

byte chain = 0;   /* a bit per block */
byte arrived = 0;
bit open = 1;
byte heap_lock = 0;
byte finished = 0;

inline deliver(blocks)
{
    d_step { assert((arrived & (blocks)) == 0); arrived = arrived | (blocks); blocks = 0 }
}

/* A block is freed: straight to its superblock where there is no outbox, or none of this heap's.  Else the section adds it
 * to the chain, and the same store may take the chain: with the block where that makes a batch of it, without where the
 * chain was another slice's. */
inline send(block)
{
    do
    :: {
           enter(me);
           if
           :: atomic { heap_of_cid[cid_of[me]] != 0 -> leave(me); w = block }
           :: heap_of_cid[cid_of[me]] == 0 ->
               if
               :: atomic { !open -> leave(me); w = block }
               :: open ->
                   w = chain;
                   if
                   :: atomic { chain = w | block; w = 0; leave(me) }
#ifdef LATE_TAKE
                   :: atomic { w = w | block; chain = w; leave(me) };
                      chain = 0
#else
                   :: atomic { chain = 0; w = w | block; leave(me) }
#endif
                   :: atomic { chain = block; leave(me) }
                   fi
               fi
           fi;
           break
       } unless { restarted(me) }
    od;
    deliver(w)
}

inline take()
{
#ifdef NO_RECHECK
    seen = open;
#endif
#ifndef NO_LOCK
    lock(heap_lock, me);
#endif
#ifndef NO_RECHECK
    seen = open;
#endif
    if
    :: seen ->
        w = chain;
#ifdef PLAIN_TAKE
        chain = 0
#else
        rcs_compare_and_store(me, 0, chain, w, chain, 0, result);
        if
        :: result != DONE -> w = 0
        :: else
        fi
#endif
    :: else
    fi;
#ifndef NO_LOCK
    unlock(heap_lock, me);
#endif
    deliver(w);
    seen = 0
}

proctype program(byte me; byte first, second)
{
    byte w = 0;
    bit seen = 0;
    mtype result;

    send(first);
    take();
    send(second);
    finished++
}

proctype pass()
{
    byte w = 0;

    lock(heap_lock, PASS);
    open = 0;
    unlock(heap_lock, PASS);
#ifndef NO_FENCE
    fence();
#endif
    w = chain;
    chain = 0;
    deliver(w);
    lock(heap_lock, PASS);
    open = 1;
    unlock(heap_lock, PASS);
    finished++
}

init {
    atomic { heap_of_cid[0] = 0; heap_of_cid[1] = 1; run program(0, 1, 2); run program(1, 4, 8); run pass() };
    finished == 3;
    assert((arrived & chain) == 0);
    assert((arrived | chain) == 15)
}
