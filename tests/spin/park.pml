/* SPDX-License-Identifier: MIT
 *
 * Parking the manager: the program asks it to keep still (before fork, setuid, seccomp...), waits until it does, goes on.
 *
 * One word {requests, PARKED}. A parker adds one request, wakes the manager and sleeps until it sees PARKED. The manager
 * looks between jobs: with requests it sets PARKED, wakes the parkers and sleeps until the requests are gone, then swaps
 * {0, PARKED} for {0, not parked}. Sleeping is a futex wait: it looks at the word and falls asleep in one step. The
 * manager's jobs take a heap's lock; so do the program's slow paths.
 *
 * Claims: while a parker believes it is parked, the manager touches nothing; nobody sleeps for ever.
 *
 * Broken on purpose:
 *   RESUME_PLAIN  the manager stores {0, not parked} after seeing no request, instead of swapping it in
 *   LOST_WAKE     looking at the word and falling asleep are two steps
 *   HOLDING_LOCK  a thread parks the manager with a heap's lock held
 *   NO_WAIT       a parker goes on as soon as it has asked
 */
byte requests = 0;  /* these two are one machine word */
bit parked = 0;
bit touching = 0;
bit heap_lock = 0;
bit asleep[3];
byte finished = 0;

#define MANAGER 2

#define lock(l)   atomic { !(l) -> l = 1 }
#define unlock(l) atomic { assert(l); l = 0 }

#define WAKE_ALL() atomic { asleep[0] = 0; asleep[1] = 0; asleep[2] = 0 }

/* futex wait: sleeps unless `reason` is gone. Every change of the word that matters is followed by a wake. */
inline sleep_while(t, reason)
{
#ifdef LOST_WAKE
    if
    :: reason -> asleep[t] = 1; !asleep[t]
    :: else
    fi
#else
    if
    :: atomic { reason -> asleep[t] = 1 }; !asleep[t]
    :: else
    fi
#endif
}

active proctype manager()
{
end_idle:
    do
    :: requests == 0 && !parked && finished < 2 ->
        lock(heap_lock);
        touching = 1;
        touching = 0;
        unlock(heap_lock)
    :: atomic { requests > 0 && !parked -> parked = 1 };
        WAKE_ALL();
        do
        :: sleep_while(MANAGER, requests > 0);
#ifdef RESUME_PLAIN
           if
           :: requests == 0 -> atomic { parked = 0; requests = 0 }; break
           :: else
           fi
#else
           if
           :: atomic { requests == 0 -> parked = 0 }; break
           :: requests > 0
           fi
#endif
        od
    od
}

proctype thread(byte me)
{
    byte times;

    do
    :: times < 2 ->
        times++;
#ifdef HOLDING_LOCK
        lock(heap_lock);
#endif
        requests++;
        WAKE_ALL();
#ifndef NO_WAIT
        do
        :: parked -> break
        :: else -> sleep_while(me, !parked)
        od;
#endif
        assert(!touching);
#ifndef HOLDING_LOCK
        lock(heap_lock);  /* fork takes every lock */
#endif
        assert(!touching);
        unlock(heap_lock);
        requests--;
        WAKE_ALL()
    :: times == 2 -> break
    od;
    finished++
}

init {
    atomic { run thread(0); run thread(1) };
    finished == 2;
    (requests == 0 && !parked && !heap_lock)
}
