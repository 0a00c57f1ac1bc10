/* SPDX-License-Identifier: MIT
 *
 * MMT of papers/engines/: one client, its server and a forking thread: mmt.c, mmt_server.c, manager.c, around.h. All counters
 * have one writer (the paper's III-E2).
 *
 * The client asks for blocks of one size. It takes from its bucket; if that is empty it takes the next one that the server
 * has given, and orders the one after it; if there is none it makes a request and waits. What it frees goes to one of two
 * queues of two. The server answers requests, fills buckets of two, empties queues, and sleeps when there is nothing to do.
 * At the same time another thread forks: it pauses the server and then takes a lock of another library, which the client
 * may hold around all that.
 *
 * Claims: no block has two owners and none is lost; the server never writes the bucket, nor empties the queue, that the
 * client uses; nobody sleeps for ever; a fork finds nothing of the server's half done.
 *
 * Broken on purpose:
 *   WAITS_ON       the client waits for the server even if a fork has paused it
 *   NO_TAKE_BACK   a client that did not wait for a reply does not wait for it before the next request
 *   SLEEP_BLIND    the server does not look once more before it sleeps
 *   WAKE_FIRST     the client looks whether the server sleeps before it publishes the request
 *   LATE_WAITING   the client says that it waits and falls asleep without another look
 *   ONE_BUCKET     the next bucket is filled where the one in use is
 *   GIVE_EARLY     a bucket is given before its last block is in it
 *   QUEUE_UNSEEN   the client fills a queue without a look whether it is empty
 *   FORK_RUNS_ON   fork does not pause the server
 */
/* Without forks more operations can be looked at. */
#ifndef OPS
#define OPS   3
#define FORKS 1
#endif

#define BLOCKS 9
#define NONE   9
#define SIZE   2

mtype = { LIBRARY, SERVER, PROGRAM, QUEUED };

mtype where[BLOCKS] = LIBRARY; /* not part of the program */

/* the client's */
byte wakeup = 0, taken = 0, ordered = 0, handed = 0;
bit waiting = 0, deserted = 0;
bit client_sleeps = 0;
byte fill = 0;

/* the server's */
byte served = 0, given = 0, seen = 0, drained = 0;
byte reply = NONE;
bit server_sleeps = 0, sleeping = 0;
bit touching = 0; /* not part of the program: something is half done */

byte bucket[4] = NONE;  /* number n is at 2 * (n % 2) */
byte count[2];          /* blocks in it */
byte next[2];           /* the client's, once given */
byte queue[4] = NONE;

byte forks = 0, pausing = 0;
byte work = 0, foreign = 0;
byte finished = 0;

#define lock(l, who) atomic { (l) == 0 -> l = who }
#define unlock(l)    l = 0

#define BUCKET(n) ((n) % 2)
#ifdef ONE_BUCKET
#define PLACE(n) 0
#else
#define PLACE(n) BUCKET(n)
#endif

inline library_malloc(b)
{
    d_step {
        b = 0;
        do
        :: b < BLOCKS && where[b] != LIBRARY -> b++
        :: else -> break
        od;
        assert(b < BLOCKS)
    }
}

/* ---- the client ---- */

inline wake_server()
{
    if
    :: sleeping -> sleeping = 0; server_sleeps = 0
    :: !sleeping
    fi
}

/* manager_await. A futex looks at its word and falls asleep in one step; a sleeper looks up now and then, which is all that
 * a fork needs: without one this model has no such timeout, or it would not notice a lost wake. */
inline await(counter, value)
{
    do
    :: counter != value -> break
#ifndef WAITS_ON
    :: counter == value && forks > 0 -> break
#endif
    :: counter == value ->
        waiting = 1;
#ifdef LATE_WAITING
        client_sleeps = 1;
#else
        if
        :: atomic { counter == value -> client_sleeps = 1 }
        :: counter != value
        fi;
#endif
#ifdef WAITS_ON
        !client_sleeps
#else
        if
        :: !client_sleeps
        :: atomic { forks > 0 -> client_sleeps = 0 }
        fi
#endif
    od;
    waiting = 0
}

inline receive(b)
{
    d_step { assert(where[b] == SERVER); where[b] = PROGRAM }
}

/* The library's own malloc, past the server. */
inline go_around()
{
    atomic { library_malloc(mine); where[mine] = PROGRAM }
}

inline take_back()
{
    old = served;
    if
    :: wakeup != old -> await(served, old)
    :: else
    fi;
    if
    :: served == wakeup -> deserted = 0; receive(reply); d_step { where[reply] = LIBRARY }
    :: else
    fi
}

inline request()
{
#ifndef NO_TAKE_BACK
    if
    :: deserted -> take_back()
    :: !deserted
    fi;
#endif
    if
#ifndef NO_TAKE_BACK
    :: deserted -> go_around()
#endif
    :: else ->
        old = served;
#ifdef WAKE_FIRST
        wake_server();
        wakeup++;
#else
        wakeup++;
        wake_server();
#endif
        await(served, old);
        if
        :: served != old -> mine = reply; receive(mine)
        :: else -> deserted = 1; go_around()
        fi
    fi;
    old = 0
}

inline take()
{
    mine = bucket[2 * PLACE(taken - 1) + next[PLACE(taken - 1)]];
    next[PLACE(taken - 1)] = next[PLACE(taken - 1)] + 1;
    assert(mine != NONE);
    receive(mine)
}

inline allocate()
{
    if
    :: taken > 0 && next[PLACE(taken - 1)] < count[PLACE(taken - 1)] -> take()
    :: else ->
        if
        :: given != taken -> taken++; ordered++; wake_server(); take()
        :: given == taken -> request()
        fi
    fi
}

inline release()
{
    old = drained;
#ifndef QUEUE_UNSEEN
    if
    :: fill == 0 && handed - old >= 2 -> await(drained, old)
    :: else
    fi;
#endif
    if
#ifndef QUEUE_UNSEEN
    :: fill == 0 && handed - drained >= 2 -> d_step { where[mine] = LIBRARY } /* around it */
#endif
    :: else ->
        d_step { assert(queue[2 * (handed % 2) + fill] == NONE); where[mine] = QUEUED; queue[2 * (handed % 2) + fill] = mine };
        fill++;
        if
        :: fill == 2 -> fill = 0; handed++; wake_server()
        :: else
        fi
    fi;
    old = 0
}

proctype client(byte times)
{
    byte mine, old;

    do
    :: times > 0 ->
        times--;
        lock(foreign, 1);
        allocate();
        release();
        unlock(foreign);
        mine = 0
    :: times == 0 -> break
    od;
    finished++
}

/* ---- the server ---- */

#define ANYTHING (wakeup != served || ordered != seen || handed != drained || filling && count[PLACE(given)] < SIZE)

inline wake_client()
{
    if
    :: waiting -> client_sleeps = 0
    :: !waiting
    fi
}

inline want_filled()
{
    if
    :: !filling && taken == given ->
#ifndef ONE_BUCKET
        assert(next[PLACE(given)] == count[PLACE(given)]);
#endif
        count[PLACE(given)] = 0;
        next[PLACE(given)] = 0;
        filling = 1
    :: else
    fi
}

inline serve()
{
    touching = 1;
    atomic { library_malloc(b); where[b] = SERVER };
    reply = b;
    want_filled();
    touching = 0;
    served++;
    wake_client()
}

inline fill_one()
{
    touching = 1;
#ifdef GIVE_EARLY
    if
    :: count[PLACE(given)] == SIZE - 1 -> given++; count[PLACE(given - 1)] = SIZE; filling = 0;
        atomic { library_malloc(b); where[b] = SERVER };
        bucket[2 * PLACE(given - 1) + SIZE - 1] = b
    :: else ->
        atomic { library_malloc(b); where[b] = SERVER };
        bucket[2 * PLACE(given) + count[PLACE(given)]] = b;
        count[PLACE(given)] = count[PLACE(given)] + 1
    fi;
#else
    atomic { library_malloc(b); where[b] = SERVER };
    bucket[2 * PLACE(given) + count[PLACE(given)]] = b;
    count[PLACE(given)] = count[PLACE(given)] + 1;
    if
    :: count[PLACE(given)] == SIZE -> filling = 0; given++
    :: else
    fi;
#endif
    touching = 0
}

inline drain()
{
    touching = 1;
    b = 0;
    do
    :: b < 2 ->
        d_step {
            assert(where[queue[2 * (drained % 2) + b]] == QUEUED);
            where[queue[2 * (drained % 2) + b]] = LIBRARY;
            queue[2 * (drained % 2) + b] = NONE
        };
        b++
    :: b == 2 -> break
    od;
    touching = 0;
    drained++;
    wake_client()
}

inline checkpoint()
{
    if
    :: pausing == 0
    :: pausing > 0 -> unlock(work); pausing == 0; lock(work, 2)
    fi
}

inline sleep()
{
    sleeping = 1;
    if
#ifndef SLEEP_BLIND
    :: ANYTHING
#endif
    :: else ->
        unlock(work);
        if
        :: atomic { sleeping -> server_sleeps = 1 }
        :: !sleeping
        fi;
end_asleep: /* for ever, if nobody wants anything */
        !server_sleeps;
        lock(work, 2)
    fi;
    sleeping = 0
}

active proctype server()
{
    byte b;
    bit filling;

    lock(work, 2);
    do
    :: true ->
        checkpoint();
        if
        :: wakeup != served -> serve()
        :: wakeup == served && ordered != seen -> seen++; want_filled()
        :: wakeup == served && ordered == seen && filling -> fill_one()
        :: wakeup == served && ordered == seen && !filling && handed != drained -> drain()
        :: else -> sleep()
        fi;
        b = 0
    od
}

/* ---- the forking thread ---- */

proctype forker(byte times)
{
    do
    :: times > 0 ->
        times--;
        forks++;
#ifndef FORK_RUNS_ON
        pausing++;
        lock(work, 3);
#endif
        lock(foreign, 3);
        assert(!touching);
        unlock(foreign);
#ifndef FORK_RUNS_ON
        unlock(work);
        pausing--;
#endif
        forks--
    :: times == 0 -> break
    od;
    finished++
}

init {
    byte b, n;

    atomic { run client(OPS); run forker(FORKS) };
    finished == 2;
    server_sleeps || sleeping == 0 && wakeup == served && ordered == seen && handed == drained;
    d_step { assert(work == 0 || work == 2); assert(foreign == 0 && forks == 0 && pausing == 0) }
}
