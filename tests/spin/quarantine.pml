/* SPDX-License-Identifier: MIT
 *
 * The hardened library's quarantine: src/hardened/quarantine.c.
 *
 * Each cid has a ring, here of one place. A free exchanges its block with the place in a section and releases what was there.
 * Who empties the rings takes them away from sections first. Two threads free two blocks each; two others empty the rings.
 *
 * Claim: every block is released once, or is still in one place.
 *
 * Broken on purpose:
 *   NO_FENCE    the rings are emptied while a section that found them open may still commit
 *   NO_LOCK     two threads empty the rings at once, and one opens them while the other is not done
 *   OPEN_EARLY  sections find the rings again before they are empty
 */
#include "common.pml"

byte place[CIDS];
bit closed[CIDS]; /* what sections see */
bit emptying;
byte released[5];
byte finished;

inline release(block)
{
    d_step {
        released[block]++;
        assert(released[block] == 1)
    }
}

inline free_block(me, block)
{
    do
    :: {
           enter(me);
           if
           :: atomic { closed[cid_of[me]] -> old = block; leave(me) }
           :: !closed[cid_of[me]] ->
               old = place[cid_of[me]];
               atomic { place[cid_of[me]] = block; leave(me) }
           fi;
           break
       } unless { restarted(me) }
    od;
    if
    :: old != 0 -> release(old)
    :: old == 0
    fi;
    old = 0
}

inline take_out(cid)
{
    taken = place[cid];
    place[cid] = 0;
    if
    :: taken != 0 -> release(taken)
    :: taken == 0
    fi;
    taken = 0
}

proctype freer(byte me)
{
    byte old;

    free_block(me, 2 * me + 1);
    free_block(me, 2 * me + 2);
    finished++
}

proctype emptier()
{
    byte taken;

#ifndef NO_LOCK
    if
    :: atomic { !emptying -> emptying = 1 }
    :: emptying -> goto done
    fi;
#endif
    closed[0] = 1;
    closed[1] = 1;
#ifndef NO_FENCE
    fence();
#endif
#ifdef OPEN_EARLY
    closed[0] = 0;
    closed[1] = 0;
#endif
    take_out(0);
    take_out(1);
    closed[0] = 0;
    closed[1] = 0;
    emptying = 0;
done:
    finished++
}

#define IS_ONCE(b) (released[b] + (place[0] == b) + (place[1] == b) == 1)

init {
    atomic { run freer(0); run freer(1); run emptier(); run emptier() };
    finished == 4;
    assert(!emptying && !closed[0] && !closed[1]);
    assert(IS_ONCE(1) && IS_ONCE(2) && IS_ONCE(3) && IS_ONCE(4))
}
