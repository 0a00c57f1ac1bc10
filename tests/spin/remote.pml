/* SPDX-License-Identifier: MIT
 *
 * Remote frees: ARMED, the pending stack and a superblock that changes its owner meanwhile. Only atomics, locks and
 * fences are involved, so there are no sections here.
 *
 * One superblock of heap 0 is full and armed. Two threads of other heaps free a block of it. Meanwhile a thief takes it
 * from heap 0 to heap 1, where it is relisted, and each heap flushes its pending stack when it likes.
 *
 * Claims: the superblock is never on two pending stacks; and when all is quiet a block on the remote list means that it
 * is on a pending stack. After every stack has been flushed once more, nothing is left on the remote list and it is
 * armed again.
 *
 * Broken on purpose:
 *   NOT_REARMED       relisting leaves the remote list unarmed
 *   CLEAR_LATE        the mark "pending" is cleared after relisting instead of before
 *   MARK_BEFORE_OWNER the pusher sets the mark, then reads the owner, and takes the mark back if there is none
 *   OWNER_FIRST       the pusher reads the owner before it pushes (once a bug of chains)
 *   ARM_BEFORE_OWNER  the new owner arms first and signs as owner after
 *   RESET_MARK        the thief resets the mark of a superblock it took
 *   NO_FORWARD        a flush drops a superblock that has another owner now
 */
#define HEAPS   2
#define NO_HEAP 3

byte owner = 0;
byte x_remote = 0;  /* blocks pushed */
bit x_armed = 1;    /* the same machine word */
bit x_is_pending = 0;
bit pending[HEAPS];
byte heap_lock[HEAPS];
byte collected = 0;
byte finished = 0;

#define lock(l)   atomic { (l) == 0 -> l = 1 }
#define unlock(l) atomic { assert((l) == 1); l = 0 }

inline push_pending(heap)
{
    if
    :: atomic { !x_is_pending -> x_is_pending = 1 };
       atomic { assert(!pending[0] && !pending[1]); pending[heap] = 1 }
    :: x_is_pending
    fi
}

/* Of an owned superblock, under its heap's lock. */
inline relist()
{
    do
    :: atomic { collected = collected + x_remote; x_remote = 0; x_armed = 0 };
#ifdef NOT_REARMED
       break
#else
       if
       :: atomic { x_remote == 0 -> x_armed = 1 }; break
       :: x_remote != 0
       fi
#endif
    od
}

inline flush(heap)
{
    if
    :: atomic { pending[heap] -> pending[heap] = 0 };
#ifndef CLEAR_LATE
       x_is_pending = 0;
#endif
       o = owner;
       if
       :: o == heap -> relist()
       :: o != heap && o != NO_HEAP ->
#ifndef NO_FORWARD
           push_pending(o)
#else
           skip
#endif
       :: o == NO_HEAP
       fi;
       o = 0;
#ifdef CLEAR_LATE
       x_is_pending = 0
#endif
    :: !pending[heap]
    fi
}

proctype pusher()
{
    bit was_armed;
    byte o;

#ifdef OWNER_FIRST
    o = owner;
#endif
    atomic { x_remote++; was_armed = x_armed; x_armed = 0 };
    if
    :: was_armed ->
#ifdef MARK_BEFORE_OWNER
        if
        :: atomic { !x_is_pending -> x_is_pending = 1 };
           o = owner;
           if
           :: o == NO_HEAP -> x_is_pending = 0
           :: o != NO_HEAP -> atomic { assert(!pending[0] && !pending[1]); pending[o] = 1 }
           fi
        :: x_is_pending
        fi
#else
#ifndef OWNER_FIRST
        o = owner;
#endif
        if
        :: o != NO_HEAP -> push_pending(o)
        :: o == NO_HEAP /* whoever has it looks at the remote list once more after signing as owner */
        fi
#endif
    :: else
    fi;
    finished++
}

/* Heap 1 takes the superblock from heap 0: sections are fenced off, the new owner relists. */
proctype thief()
{
    lock(heap_lock[1]);
    lock(heap_lock[0]);
    owner = NO_HEAP;
#ifdef RESET_MARK
    x_is_pending = 0;
#endif
    unlock(heap_lock[0]);
#ifdef ARM_BEFORE_OWNER
    relist();
    owner = 1;
#else
    owner = 1;
    relist();
#endif
    unlock(heap_lock[1]);
    finished++
}

proctype flusher(byte heap)
{
    byte o, times;

    do
    :: times < 2 -> lock(heap_lock[heap]); flush(heap); unlock(heap_lock[heap]); times++
    :: break
    od;
    times = 0;
    finished++
}

init {
    byte o;

    atomic { run pusher(); run pusher(); run thief(); run flusher(0); run flusher(1) };
    finished == 5;
    assert(x_remote == 0 && x_armed || pending[0] || pending[1]);
    assert(x_is_pending == (pending[0] || pending[1]));
    /* what a refill does before it maps new memory: everybody's pending superblocks, the old owner's first */
    flush(0);
    flush(1);
    assert(x_remote == 0 && x_armed && collected == 2)
}
