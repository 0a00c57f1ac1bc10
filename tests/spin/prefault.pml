/* SPDX-License-Identifier: MIT
 *
 * The prefault pool: pages touched ahead of the program, and purged where they were not used.
 *
 * A free run of slices, one page each. Two threads of the program take slices from its front, write to them, and
 * give some back. The manager takes the slice ahead of the front out under the span lock, touches its page without any lock,
 * and puts it back as prefaulted. Now and then it purges pages of free spans, after taking them out of the bins
 * likewise.  Outside the lock it may stop for ever at any step.
 *
 * Claims: no page the program has is touched, and whatever it wrote stays; memory said to be zero is; what counts as
 * prefaulted are the free slices marked so, never more than the bound; the program finishes without the manager.
 *
 * Broken on purpose:
 *   TOUCH_IN_BIN    a slice can be taken while its page is prefaulted
 *   MARK_LATE       it is marked as prefaulted after the lock was released
 *   TAKE_KEEPS_MARK the program takes a slice and leaves the mark on it
 *   PURGE_IN_BIN    a free span's pages are purged while it can be taken
 *   DIRTY_LATE      a slice is free before it is known to hold something
 */
#define SLICES 3
#define BOUND  1 /* of the pool, in slices */
#define NONE   SLICES

#define IN_FRESH   0 /* never used, the fresh end */
#define IN_BIN     1
#define IN_PROGRAM 2
#define IN_MANAGER 3 /* taken out to prefault its page, or to purge it */

byte where[SLICES];
bit warm[SLICES], dirty[SLICES];
byte page[SLICES]; /* what it holds: 0, or who wrote it */
byte front = 0, cursor = 0, prefaulted = 0;
byte span_lock = 0;
bit stopped = 0;
byte finished = 0;

#define lock(t)   atomic { span_lock == 0 -> span_lock = t + 1 }
#define unlock(t) atomic { assert(span_lock == t + 1); span_lock = 0 }
#define is_free(i) (where[i] == IN_FRESH || where[i] == IN_BIN)

/* From the bins or else the fresh end; the span lock is held. */
inline take(s)
{
    d_step {
        s = NONE;
        i = 0;
        do
        :: i < SLICES && s == NONE && where[i] == IN_BIN -> s = i
        :: i < SLICES && !(s == NONE && where[i] == IN_BIN) -> i++
        :: i == SLICES -> break
        od;
        i = 0;
        do
        :: i < SLICES && s == NONE && where[i] == IN_FRESH -> s = i
        :: i < SLICES && !(s == NONE && where[i] == IN_FRESH) -> i++
        :: i == SLICES -> break
        od;
        i = 0;
        if
        :: s != NONE ->
            where[s] = IN_PROGRAM;
            front = s + 1;
            if
            :: warm[s] -> prefaulted--
            :: else
            fi
#ifndef TAKE_KEEPS_MARK
            ;
            warm[s] = 0
#endif
        :: else
        fi
    }
}

proctype program(byte me; byte requests)
{
    byte s, i;

    do
    :: requests > 0 ->
        requests--;
        lock(me);
        take(s);
        unlock(me);
        if
        :: s == NONE
        :: s != NONE ->
            assert(dirty[s] || page[s] == 0); /* calloc believes it */
            page[s] = me + 1;
            assert(page[s] == me + 1);
            if
            :: true -> /* keeps it */
                page[s] = me + 11
            :: true -> /* gives it back: it holds something from here on */
                assert(page[s] == me + 1);
#ifndef DIRTY_LATE
                dirty[s] = 1;
#endif
                lock(me);
                where[s] = IN_BIN;
                unlock(me);
#ifdef DIRTY_LATE
                dirty[s] = 1;
#endif
                skip
            fi
        fi;
        s = 0
    :: requests == 0 -> break
    od;
    finished++
}

#define MANAGER 2

/* What it holds is gone, and not counted any more; the span lock is held. */
inline note_returned(s)
{
    d_step {
        if
        :: warm[s] -> prefaulted--; cursor = 0
        :: else
        fi;
        warm[s] = 0; dirty[s] = 0
    }
}

inline prefault()
{
    lock(MANAGER);
    d_step {
        s = NONE;
        if
        :: cursor <= front -> cursor = front + 1 /* what the program is about to touch is left to it */
        :: else
        fi;
        if
        :: prefaulted < BOUND && cursor < SLICES && is_free(cursor) && !warm[cursor] && !dirty[cursor] ->
            s = cursor; cursor++
#ifndef TOUCH_IN_BIN
            ;
            where[s] = IN_MANAGER
#endif
        :: else
        fi
    };
    unlock(MANAGER);
    if
    :: s != NONE ->
        assert(where[s] != IN_PROGRAM); /* who may have forbidden to write there */
        lock(MANAGER);
#ifdef MARK_LATE
        where[s] = IN_BIN;
        unlock(MANAGER);
        d_step { warm[s] = 1; prefaulted++ }
#else
        d_step { warm[s] = 1; prefaulted++; where[s] = IN_BIN };
        unlock(MANAGER)
#endif
    :: else
    fi
}

inline purge_span()
{
    lock(MANAGER);
    d_step {
        s = NONE; i = 0;
        do
        :: i < SLICES && where[i] == IN_BIN && (warm[i] || dirty[i]) -> s = i; break
        :: i < SLICES && !(where[i] == IN_BIN && (warm[i] || dirty[i])) -> i++
        :: i == SLICES -> break
        od;
        i = 0
#ifndef PURGE_IN_BIN
        ;
        if
        :: s != NONE -> where[s] = IN_MANAGER
        :: else
        fi
#endif
    };
    unlock(MANAGER);
    if
    :: s != NONE ->
        page[s] = 0;
        lock(MANAGER);
        note_returned(s);
#ifndef PURGE_IN_BIN
        where[s] = IN_BIN;
#endif
        unlock(MANAGER)
    :: else
    fi
}

proctype manager(byte passes)
{
    byte s, i;

    {
        do
        :: passes > 0 ->
            passes--;
            if
            :: prefault()
            :: purge_span()
            fi;
            s = 0
        :: passes == 0 -> break
        od
    } unless { stopped && span_lock != MANAGER + 1 };
    finished++
}

proctype stopper()
{
    if
    :: stopped = 1
    :: true
    fi
}

/* What is kept is kept: page values above 10 are of slices a thread went on using. */
inline take_stock()
{
    n = 0; i = 0;
    do
    :: i < SLICES ->
        n = n + (warm[i] && where[i] != IN_PROGRAM);
        assert(where[i] != IN_PROGRAM || page[i] > 10);
        assert(where[i] != IN_PROGRAM || !warm[i]);
        assert(where[i] == IN_PROGRAM || dirty[i] || page[i] == 0);
        assert(where[i] != IN_MANAGER || stopped);
        i++
    :: else -> break
    od;
    assert(n == prefaulted && prefaulted <= BOUND)
}

init {
    byte i, n;

    atomic { run program(0, 2); run program(1, 1); run manager(3); run stopper() };
    finished == 3;
    d_step { take_stock() }
}
