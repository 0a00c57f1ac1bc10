/* SPDX-License-Identifier: MIT
 *
 * Starting, waking and parking the manager, forbidding it for good, and fork: src/manager/state.c, start.c, loop.c, park.c
 * and wake.c, src/heap/pass.c.
 *
 * The manager is a thread that works in passes and takes a heap's lock for it; between two passes it sleeps on a counter,
 * a count, which whoever wants something increments before he wakes it. When it is told to stop it ends, and the kernel
 * clears `tid` and wakes who sleeps on that. Two threads of the program each do some of: start it when there is none (any
 * slow path does), park it and wait, park it from a signal handler that interrupted a slow path (the heap's lock is held,
 * nobody waits), forbid it while it is parked in either way, purge with a lock of libc's in hand, fork, which takes that
 * lock of libc's.
 *
 * Claims: after a park that waited, and until it is resumed, there is no manager; after one that did not, it ends as soon
 * as it can; once forbidden, and parked by somebody who waited, none runs any more, and none that runs does not end;
 * fork finds nothing half done by the manager; nobody sleeps for ever; and one can be started again afterwards.
 *
 * Broken on purpose:
 *   LOST_WAKE      looking at the count and falling asleep are two steps
 *   HEARD_LATE     the manager reads the count after it has looked whether it is to stop
 *   NO_WAIT        a parker goes on as soon as it has asked
 *   HANDLER_WAITS  the signal handler waits, with the lock it interrupted held
 *   NO_RECHECK     who starts one does not look, once it is marked busy, whether it was parked meanwhile
 *   STALE_LOOK     nor whether the last one has left its stack, which it looked at before
 *   END_STORES     at its end the manager says "absent" whatever was said meanwhile
 *   FORK_RUNS_ON   fork does not pause the manager
 *   LOOK_FIRST     the manager looks whether it may work before it says that it does
 *   FORK_LOCKS     fork holds the heap's lock while libc takes its own
 *   ALL_PAUSE      a thread of the program waits for the fork as the manager does
 */
#define THREADS 2
#define FREE    0

mtype = { ABSENT, BUSY, ASLEEP, FORBIDDEN };

mtype state = ABSENT;
byte wakes = 0;
bit sleeps = 0;       /* the manager, on the count */
bit stop = 0;
byte tid = 0;
bit waits[THREADS];   /* for tid to be cleared */
byte parks = 0;
byte pass_lock = FREE, heap_lock = FREE, stdio_lock = FREE;
byte pauses = 0;
bit working = 0;
byte finished = 0, starts = 0;

bit touching = 0;     /* not part of the program: the heap is half changed */
byte parked = 0;      /* parkers who waited and have not resumed */
byte running = 0;
bit forbidden = 0;

#define lock(l, t)   atomic { (l) == FREE -> l = t + 1 }
#define unlock(l, t) atomic { assert((l) == t + 1); l = FREE }

/* ---- the manager ---- */

#define MANAGER 2

inline wake_manager()
{
    wakes++;
    sleeps = 0
}

inline change_state(from, to)
{
    atomic {
        if
        :: state == from -> state = to
        :: else
        fi
    }
}

inline sleep_while_unheard()
{
#ifdef LOST_WAKE
    if
    :: wakes == heard -> sleeps = 1
    :: else
    fi;
#else
    if
    :: atomic { wakes == heard -> sleeps = 1 }
    :: wakes != heard
    fi;
#endif
end_asleep: /* for ever, if nobody wakes it */
    !sleeps
}

proctype manager()
{
    byte heard;

    do
    :: stop -> break
    :: !stop ->
        do
        :: lock(pass_lock, MANAGER);
#ifdef LOOK_FIRST
            if
            :: pauses == 0 -> working = 1; break
            :: else
            fi;
#else
            working = 1;
            if
            :: pauses == 0 -> break
            :: else -> working = 0
            fi;
#endif
            unlock(pass_lock, MANAGER);
            pauses == 0
        od;
        lock(heap_lock, MANAGER);
        touching = 1;
        unlock(heap_lock, MANAGER);
        touching = 0;
        unlock(pass_lock, MANAGER);
        working = 0;
#ifdef HEARD_LATE
        if
        :: stop -> break
        :: else
        fi;
        heard = wakes;
#else
        heard = wakes;
        if
        :: stop -> break
        :: else
        fi;
#endif
        change_state(BUSY, ASLEEP);
        do
        :: wakes == heard -> sleep_while_unheard()
        :: wakes != heard -> break
        od;
        change_state(ASLEEP, BUSY)
    od;
#ifdef END_STORES
    state = ABSENT;
#else
    change_state(BUSY, ABSENT);
#endif
    atomic { running--; tid = 0; waits[0] = 0; waits[1] = 0 } /* the kernel */
}

/* ---- the program ---- */

inline ask_to_stop()
{
    stop = 1;
    wake_manager()
}

inline start()
{
    if
    :: parks == 0 && tid == 0 ->
        atomic {
            if
            :: state == ABSENT && starts < 2 -> state = BUSY; ok = 1
            :: else -> ok = 0
            fi
        };
#ifndef STALE_LOOK
        if
        :: ok && tid != 0 -> ok = 0; change_state(BUSY, ABSENT)
        :: else
        fi;
#endif
        if
        :: ok ->
            stop = 0;
            tid = 1;
            if
#ifndef NO_RECHECK
            :: parks != 0 || state != BUSY -> tid = 0; waits[0] = 0; waits[1] = 0; change_state(BUSY, ABSENT)
#endif
            :: else -> atomic { running++; starts++; run manager() }
            fi
        :: else
        fi
    :: else
    fi
}

inline park_and_wait()
{
    parks++;
    ask_to_stop();
#ifndef NO_WAIT
    state != BUSY && state != ASLEEP;
    do
    :: tid == 0 -> break
    :: tid != 0 ->
        if
        :: atomic { tid != 0 -> waits[me] = 1 }; !waits[me]
        :: tid == 0
        fi
    od;
#endif
    atomic { parked++; assert(running == 0) }
}

inline resume()
{
    parks--
}

inline in_handler()
{
    lock(heap_lock, me);
#ifdef HANDLER_WAITS
    park_and_wait();
    parked--;
#else
    parks++;
    ask_to_stop();
#endif
    if
    :: true
    :: atomic { state = FORBIDDEN; forbidden = 1 }
    fi;
    resume();
    unlock(heap_lock, me)
}

/* malloc without memory, called by libc with a lock of its own held. */
inline purge()
{
    lock(stdio_lock, me);
    lock(pass_lock, me);
#ifdef ALL_PAUSE
    do
    :: pauses == 0 -> break
    :: pauses != 0 -> unlock(pass_lock, me); pauses == 0; lock(pass_lock, me)
    od;
#endif
    lock(heap_lock, me);
    unlock(heap_lock, me);
    unlock(pass_lock, me);
    unlock(stdio_lock, me)
}

inline fork()
{
#ifndef FORK_RUNS_ON
    pauses++;
    !working;
#endif
#ifdef FORK_LOCKS
    lock(heap_lock, me);
#endif
    lock(stdio_lock, me);
    assert(!touching);
    unlock(stdio_lock, me);
#ifdef FORK_LOCKS
    unlock(heap_lock, me);
#endif
#ifndef FORK_RUNS_ON
    pauses--
#endif
}

proctype thread(byte me; byte times)
{
    bit ok;

    do
    :: times > 0 ->
        times--;
        if
        :: start()
        :: park_and_wait();
            assert(running == 0);
            if
            :: true
            :: atomic { state = FORBIDDEN; forbidden = 1 }; assert(running == 0)
            fi;
            assert(running == 0);
            parked--;
            resume()
        :: in_handler()
        :: purge()
        :: fork()
        fi;
        ok = 0
    :: times == 0 -> break
    od;
    finished++
}

/* There is none while somebody who waited has it parked. */
active proctype watch()
{
end_watch:
    atomic { parked > 0 && running > 0 -> assert(false) }
}

init {
    atomic { run thread(0, 3); run thread(1, 2) };
    finished == THREADS;
    (sleeps || running == 0) && heap_lock == FREE; /* it settles */
    d_step {
        assert(pass_lock == FREE && stdio_lock == FREE && parks == 0 && pauses == 0);
        /* forbidden, none is left; none there, one may be started */
        assert(!forbidden || state == FORBIDDEN && running == 0);
        assert(running == 1 || state == ABSENT || state == FORBIDDEN);
        assert(running == 0 || !stop && (state == ASLEEP))
    }
}
