/* SPDX-License-Identifier: MIT
 *
 * Restartable sections, as every model here sees them.
 *
 * The kernel gives each running thread a concurrency id (cid) that no other running thread has. A restartable section
 * runs between enter() and leave(); when its thread is preempted, moved, interrupted by a signal or hit by another
 * thread's fence, the section starts again from its first instruction. Here a thread needs a cid only inside a section,
 * so whatever happens between two sections includes "was preempted, ran elsewhere, came back under another cid".
 *
 * The process kernel_preempts() may expel a thread from its section before any of its steps: the cid is free at once
 * (another thread may run sections on it) and the expelled thread's next step is the restart. So every section of every
 * model is tried with an abort at each of its instructions, any number of times.
 *
 * Every statement outside atomic/d_step is one memory access or one local decision. Memory is sequentially consistent:
 * what weaker machines add is handled by fences named in docs/protocol.md, not here.
 */
#define THREADS 2
#define CIDS    2
#define NOWHERE 7

byte cid_of[THREADS] = NOWHERE;
bit cid_busy[CIDS];
bit aborted[THREADS];

/* Begin a section: the thread runs under any cid that is free now. */
inline enter(t)
{
    atomic {
        if
        :: !cid_busy[0] -> cid_of[t] = 0
        :: !cid_busy[1] -> cid_of[t] = 1
        fi;
        cid_busy[cid_of[t]] = 1
    }
}

/* End a section. Used inside the atomic of the commit: after its last instruction a section cannot abort. */
inline leave(t)
{
    cid_busy[cid_of[t]] = 0;
    cid_of[t] = NOWHERE
}

inline expel(t)
{
    leave(t);
    aborted[t] = 1
}

/* Written after a section's body: `{ body } unless { restarted(me) }` inside a do loop. */
#define restarted(t) atomic { aborted[t] -> aborted[t] = 0 }

/* Abort whatever section runs now, thread by thread, as the membarrier system call does. */
inline fence()
{
    if
    :: atomic { cid_of[0] != NOWHERE -> expel(0) }
    :: atomic { cid_of[0] == NOWHERE -> skip }
    fi;
    if
    :: atomic { cid_of[1] != NOWHERE -> expel(1) }
    :: atomic { cid_of[1] == NOWHERE -> skip }
    fi
}

#ifdef ABORTS
/* At most so many, to look for runs that go on for ever without them. */
byte aborts_left = ABORTS;
#define ABORT_GRANTED aborts_left > 0 -> aborts_left--
#else
#define ABORT_GRANTED true
#endif

active proctype kernel_preempts()
{
end:
    do
    :: atomic { cid_of[0] != NOWHERE && ABORT_GRANTED; expel(0) }
    :: atomic { cid_of[1] != NOWHERE && ABORT_GRANTED; expel(1) }
    od
}

/* Which heap a section works on. Heaps are small numbers; EMPTY_HEAP owns nothing and serves nothing. */
#define HEAPS      2
#define EMPTY_HEAP 2
#define NO_HEAP    3

byte heap_of_cid[CIDS];

/* The one slow-path primitive, rcs_compare_and_store(heap, probe, expected, target, value). */
mtype = { DONE, CHANGED, MOVED };

inline rcs_compare_and_store(t, heap, probe, expected, target, value, result)
{
    do
    :: {
           enter(t);
           if
           :: atomic { heap_of_cid[cid_of[t]] != heap -> result = MOVED; leave(t) }
           :: heap_of_cid[cid_of[t]] == heap ->
               if
               :: atomic { probe != expected -> result = CHANGED; leave(t) }
               :: probe == expected ->
                   atomic { target = value; result = DONE; leave(t) }
               fi
           fi;
           break
       } unless { restarted(t) }
    od
}

/* Locks sleep, they never spin: a blocked statement is a sleeping thread. 0 is free, else thread + 1. */
#define lock(l, t)   atomic { (l) == 0 -> l = t + 1 }
#define unlock(l, t) atomic { assert((l) == t + 1); l = 0 }

/* A freelist head {top block, count}. A block's next holds the whole previous head, so a pop is one load and one
 * store. */
#define NEVER            15
#define LIST(top, count) ((count) * 4 + (top))
#define COUNT(list)      ((list) / 4)
#define TOP(list)        ((list) % 4)
