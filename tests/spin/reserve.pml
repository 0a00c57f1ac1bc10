/* SPDX-License-Identifier: MIT
 *
 * The reserve: a bounded buffer of spans the manager has prepared, of which the program takes one or misses.
 *
 * Three spans, two slots. The manager takes a span from the free spans, prepares it and publishes it in an empty slot;
 * when it has been wrong it takes a span back out. Two threads of the program take from the buffer, or on a miss take
 * and prepare a span themselves; they never wait for the manager, which may be killed between any two steps.
 *
 * Claims: no span has two owners, a span from the reserve is prepared, the buffer holds what its slots can hold, and no
 * span is lost, except the one in the hands of a manager that was killed.
 *
 * Broken on purpose:
 *   TAKE_PLAIN     the program takes by a load and a store instead of an exchange
 *   DECAY_PLAIN    the manager takes back by a load and a store
 *   PUBLISH_EARLY  a span is published before it is prepared
 */
#define SPANS 3
#define SLOTS 2
#define EMPTY 0 /* slots hold span + 1 */

#define AT_FREE    0
#define AT_MANAGER 1
#define AT_RESERVE 2
#define AT_PROGRAM 3

byte slot[SLOTS];
byte where[SPANS];
bit prepared[SPANS];
byte finished = 0;
bit killed = 0;

/* From the free spans, under the span lock; EMPTY if there is none. */
inline take_free(span, holder)
{
    atomic {
        if
        :: where[0] == AT_FREE -> where[0] = holder; span = 1
        :: where[1] == AT_FREE -> where[1] = holder; span = 2
        :: where[2] == AT_FREE -> where[2] = holder; span = 3
        :: else -> span = EMPTY
        fi
    }
}

proctype manager()
{
    byte span, i, times;

    {
        do
        :: times < 3 ->
            times++;
            if
            :: i = 0
            :: i = 1
            fi;
            if
            :: slot[i] == EMPTY -> /* only the manager fills slots */
                take_free(span, AT_MANAGER);
                if
                :: span != EMPTY ->
#ifdef PUBLISH_EARLY
                    atomic { slot[i] = span; where[span - 1] = AT_RESERVE };
                    prepared[span - 1] = 1;
#else
                    prepared[span - 1] = 1;
                    atomic { assert(slot[i] == EMPTY); slot[i] = span; where[span - 1] = AT_RESERVE };
#endif
                    span = EMPTY
                :: else
                fi
            :: slot[i] != EMPTY -> /* not wanted for long: take it back, if it is still there */
#ifdef DECAY_PLAIN
                span = slot[i];
                slot[i] = EMPTY;
                if
                :: span != EMPTY -> where[span - 1] = AT_MANAGER
                :: else
                fi;
#else
                atomic {
                    span = slot[i]; slot[i] = EMPTY;
                    if
                    :: span != EMPTY -> where[span - 1] = AT_MANAGER
                    :: else
                    fi
                };
#endif
                if
                :: span != EMPTY ->
                    prepared[span - 1] = 0;
                    atomic { assert(where[span - 1] == AT_MANAGER); where[span - 1] = AT_FREE };
                    span = EMPTY
                :: else
                fi
            fi
        :: times == 3 -> break
        od
    } unless { killed };
    finished++
}

proctype killer()
{
    if
    :: killed = 1
    :: true
    fi
}

proctype program(byte requests)
{
    byte span, i;

    do
    :: requests > 0 ->
        requests--;
        do
        :: i < SLOTS && span == EMPTY ->
#ifdef TAKE_PLAIN
            span = slot[i];
            atomic {
                slot[i] = EMPTY;
#else
            atomic {
                span = slot[i];
                slot[i] = EMPTY;
#endif
                if
                :: span != EMPTY ->
                    assert(where[span - 1] == AT_RESERVE && prepared[span - 1]);
                    where[span - 1] = AT_PROGRAM
                :: else
                fi
            };
            i++
        :: else -> break
        od;
        if
        :: span == EMPTY -> /* a miss */
            take_free(span, AT_PROGRAM);
            if
            :: span != EMPTY -> prepared[span - 1] = 1
            :: else
            fi
        :: else
        fi;
        if
        :: span != EMPTY ->
            atomic { assert(where[span - 1] == AT_PROGRAM && prepared[span - 1]) };
            if
            :: true /* keeps it */
            :: atomic { prepared[span - 1] = 0; where[span - 1] = AT_FREE }
            fi
        :: else
        fi;
        atomic { span = EMPTY; i = 0 }
    :: requests == 0 -> break
    od;
    finished++
}

init {
    byte i, in_hand;

    atomic { run manager(); run program(2); run program(1); run killer() };
    finished == 3;
    d_step {
        do
        :: i < SPANS ->
            in_hand = in_hand + (where[i] == AT_MANAGER);
            assert(where[i] != AT_RESERVE || slot[0] == i + 1 || slot[1] == i + 1);
            i++
        :: else -> break
        od;
        assert(in_hand == 0 || (killed && in_hand == 1));
        assert(slot[0] == EMPTY || slot[0] != slot[1])
    }
}
