/* SPDX-License-Identifier: MIT
 *
 * The quick release of a lock: src/os/lock.h, lock.c.
 *
 * A processor's store is not at once in memory: `held` is released by a store that stays in the releaser's store buffer for
 * as long as it likes, while he looks whether somebody waits. Atomic instructions empty the buffer of who executes them;
 * the barrier (membarrier) empties everybody's. Three threads take the lock, two times each, in any way, and release it
 * quickly.
 *
 * Claims: one at a time holds it; nobody sleeps for ever.
 *
 * Broken on purpose:
 *   NO_FENCE    who waits says so and looks at `held` again without a barrier in between
 *   SAID_ONCE   who was woken does not say again that somebody waits: that others are asleep is forgotten
 *   FALLS_LATE  looking at `waited` and falling asleep are two steps
 *   CLEAR_LATE  who wakes another clears `waited` afterwards
 */
#define THREADS 3
#define TURNS   2

bit held = 0, waited = 0;
bit buffered[THREADS]; /* a store of 0 to `held` */
bit asleep[THREADS];
byte inside = 0;

#define drain(t) if :: buffered[t] -> held = 0; buffered[t] = 0 :: else fi

/* ---- the processors: any store may reach memory at any time ---- */

active [THREADS] proctype processor()
{
end:
    do
    :: d_step { buffered[_pid] -> held = 0; buffered[_pid] = 0 }
    od
}

/* ---- taking ---- */

/* Compare-and-swap, or exchange, which differ in nothing here. */
inline try(t, taken)
{
    d_step {
        drain(t);
        taken = !held;
        held = 1
    }
}

inline say_waiting(t)
{
    d_step { drain(t); waited = 1 }
}

inline fence()
{
#ifndef NO_FENCE
    d_step { drain(0); drain(1); drain(2) }
#else
    skip
#endif
}

inline sleep(t)
{
#ifdef FALLS_LATE
    if
    :: waited -> asleep[t] = 1
    :: !waited
    fi;
#else
    d_step {
        drain(t);
        if :: waited -> asleep[t] = 1 :: else fi
    };
#endif
    !asleep[t]
}

inline take(t, taken)
{
    try(t, taken);
    if
    :: taken
    :: !taken ->
#ifdef SAID_ONCE
        say_waiting(t);
#endif
        do
        :: true ->
#ifndef SAID_ONCE
            say_waiting(t);
#endif
            fence();
            try(t, taken);
            if
            :: taken -> break
            :: !taken -> sleep(t)
            fi
        od
    fi
}

/* ---- releasing ---- */

inline wake_one(t)
{
    atomic {
        drain(t);
        if
        :: asleep[0] -> asleep[0] = 0
        :: asleep[1] -> asleep[1] = 0
        :: asleep[2] -> asleep[2] = 0
        :: else
        fi
    }
}

inline release_quickly(t)
{
    buffered[t] = 1;
    if
    :: waited ->
#ifdef CLEAR_LATE
        wake_one(t);
        d_step { drain(t); waited = 0 }
#else
        d_step { drain(t); waited = 0 };
        wake_one(t)
#endif
    :: !waited
    fi
}

active [THREADS] proctype thread()
{
    byte turn = 0;
    bit taken = 0;
#define me (_pid - THREADS)
    do
    :: turn < TURNS ->
        take(me, taken);
        inside++;
        assert(inside == 1);
        inside--;
        release_quickly(me);
        turn++
    :: turn == TURNS -> break
    od
}
