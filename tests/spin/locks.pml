/* SPDX-License-Identifier: MIT
 *
 * Lock order: binding, local heap, global heap. A second local heap is only tried, never waited for; the takeover, which
 * needs the binding lock, holds no heap; fork takes everything in that order.
 *
 * Claim: two threads doing any three slow paths each never wait for each other for ever.
 *
 * Broken on purpose:
 *   TAKE_WAITS          taking from another heap waits for the other heap's lock
 *   EXCHANGE_UNDER_LOCK  a refill takes over another heap with its own still locked
 */
#define lock(l)   atomic { !(l) -> l = 1 }
#define unlock(l) atomic { assert(l); l = 0 }

bit binding_lock;
bit heap_lock[2];
bit global_lock;

inline exchange()
{
    lock(binding_lock);
    unlock(binding_lock)
}

inline take_from(from)
{
#ifdef TAKE_WAITS
    lock(heap_lock[from]);
    unlock(heap_lock[from])
#else
    if
    :: atomic { !heap_lock[from] -> heap_lock[from] = 1 }; unlock(heap_lock[from])
    :: heap_lock[from]
    fi
#endif
}

inline with_global()
{
    lock(global_lock);
    unlock(global_lock)
}

inline refill(h)
{
    lock(heap_lock[h]);
    if
    :: true
    :: true -> with_global() /* take from it, or pass surplus on to it */
    :: true -> take_from(1 - h)
#ifdef EXCHANGE_UNDER_LOCK
    :: true -> exchange()
#endif
    fi;
    unlock(heap_lock[h])
}

inline fork_and_go_on()
{
    lock(binding_lock);
    lock(heap_lock[0]);
    lock(heap_lock[1]);
    lock(global_lock);
    unlock(global_lock);
    unlock(heap_lock[1]);
    unlock(heap_lock[0]);
    unlock(binding_lock)
}

active [2] proctype thread()
{
    byte times;

    do
    :: times < 3 ->
        times++;
        if
        :: true -> refill(0)
        :: true -> refill(1)
        :: true -> exchange()
        :: true -> fork_and_go_on()
        :: true -> lock(global_lock); unlock(global_lock); /* purge: each heap in turn */
           refill(0); refill(1)
        fi
    :: times == 3 -> break
    od
}
