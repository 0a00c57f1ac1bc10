/* SPDX-License-Identifier: MIT
 *
 * MMT of papers/engines/, its clients: mmt_clients.c and the end of mmt_server.c. Threads come and go; a client is adopted from an
 * ended thread or new, and the server looks only at those that it attends to.
 *
 * Two clients, two threads one after the other each time. A thread gets a client, makes a request, waits, and ends. The
 * server answers, dismisses clients whose thread has ended, and sleeps.
 *
 * Claims: no client has two threads; the server empties none that a thread uses; no thread waits for ever.
 *
 * Broken on purpose:
 *   NO_ARRIVAL     who adopts a client does not say so
 *   ARRIVES_LATE   he says so after his first request
 *   NO_HOLD        the server empties a retired client without holding it
 *   SLEEPS_DEAF    the server falls asleep without a look at the arrivals
 *   SEEN_LATE      the server notes what it has seen of the arrivals after it has looked through the clients
 */
#define CLIENTS 2
#define NONE    9

mtype = { RETIRED, OWNED, HELD };

mtype owner[CLIENTS] = RETIRED;
byte users[CLIENTS];        /* not part of the program */
bit emptying[CLIENTS];      /* not part of the program */
byte wakeup[CLIENTS], served[CLIENTS];
bit attended[CLIENTS];
byte arrivals = 0, seen = 0;
bit sleeping = 0, server_sleeps = 0;
byte finished = 0;

inline wake_server()
{
    if
    :: sleeping -> sleeping = 0; server_sleeps = 0
    :: !sleeping
    fi
}

inline request()
{
    wakeup[c]++;
    wake_server();
    served[c] == wakeup[c]
}

proctype thread(byte times)
{
    byte c;

    do
    :: times > 0 ->
        times--;
        if
        :: atomic { owner[0] == RETIRED -> owner[0] = OWNED; c = 0 }
        :: atomic { owner[1] == RETIRED -> owner[1] = OWNED; c = 1 }
        fi;
        d_step { users[c]++; assert(users[c] == 1 && !emptying[c]) };
#ifdef ARRIVES_LATE
        request();
        arrivals++;
#else
#ifndef NO_ARRIVAL
        arrivals++;
#endif
        request();
#endif
        d_step { users[c]--; assert(!emptying[c]) };
        owner[c] = RETIRED;
        wake_server()
    :: times == 0 -> break
    od;
    finished++
}

inline look_at(n)
{
    attended[n] = attended[n] || owner[n] != RETIRED
}

inline attend()
{
    if
    :: arrivals != seen ->
#ifdef SEEN_LATE
        look_at(0);
        look_at(1);
        seen = arrivals
#else
        seen = arrivals;
        look_at(0);
        look_at(1)
#endif
    :: arrivals == seen
    fi
}

inline dismiss(n)
{
#ifdef NO_HOLD
    hold = owner[n] == RETIRED;
#else
    atomic {
        if
        :: owner[n] == RETIRED -> owner[n] = HELD; hold = 1
        :: else -> hold = 0
        fi
    };
#endif
    if
    :: hold && wakeup[n] == served[n] ->
        d_step { assert(users[n] == 0); emptying[n] = 1 };
        attended[n] = 0;
        emptying[n] = 0
    :: else
    fi;
#ifndef NO_HOLD
    if
    :: hold -> owner[n] = RETIRED
    :: !hold
    fi;
#endif
    hold = 0
}

#define WAITS(n) (attended[n] && wakeup[n] != served[n])

active proctype server()
{
    bit hold;

    do
    :: true ->
        attend();
        if
        :: WAITS(0) -> served[0] = served[0] + 1
        :: WAITS(1) -> served[1] = served[1] + 1
        :: !WAITS(0) && !WAITS(1) ->
            if
            :: attended[0] && owner[0] == RETIRED -> dismiss(0)
            :: attended[1] && owner[1] == RETIRED -> dismiss(1)
            :: else ->
                sleeping = 1;
                if
#ifndef SLEEPS_DEAF
                :: arrivals != seen
#endif
                :: WAITS(0) || WAITS(1)
                :: else ->
                    if
                    :: atomic { sleeping -> server_sleeps = 1 }
                    :: !sleeping
                    fi;
end_asleep: /* for ever, if nobody wants anything */
                    !server_sleeps
                fi;
                sleeping = 0
            fi
        fi
    od
}

init {
    atomic { run thread(2); run thread(2) };
    finished == 2
}
