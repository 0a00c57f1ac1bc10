/* SPDX-License-Identifier: MIT
 *
 * A manager that has nothing to do sleeps until the program wakes it or the process's first thread ends.  The end
 * matters if it is a raw SYS_exit: libc does not end the process then, and a process lives as long as one thread does,
 * the manager's included.  When that thread ends the kernel clears a word (the one pthread_join waits for) and wakes
 * one sleeper on it; futex_waitv sleeps on that word and on the count of wakes at once.
 *
 * The manager looks once a minute all the same: where the word is not known, where the call does not exist or might be
 * filtered, and for the case that the last thread to leave by a raw exit is not the first.
 */
#include "manager/wake.h"

#include <stdatomic.h>

#include "base/bits.h"
#include "os/os.h"

#define LOOK_NS 60000000000ull
#define LOOK_FIRST_NS 1000000ull /* its end is seen a moment after the word was cleared */

static _Atomic uint32_t count;
static _Atomic(_Atomic uint32_t *) leader; /* its word; NULL: not known */

void wake_manager(void)
{
    atomic_fetch_add(&count, 1);
    os_futex_wake_one(&count);
}

uint32_t wake_count(void)
{
    return atomic_load(&count);
}

bool wake_leader_has_ended(void)
{
    const _Atomic uint32_t *word = atomic_load(&leader);
    return word != NULL && atomic_load(word) == 0;
}

/* Sleeps on the count and on the leader's life; false if that cannot be done. */
static bool sleep_on_both(uint32_t heard, uint64_t end_ns)
{
    _Atomic uint32_t *word = atomic_load(&leader);
    uint32_t alive = word == NULL ? 0 : atomic_load(word);
    if (alive == 0 || os_is_filtered())
        return false;
    bool slept = os_futex_wait_either(&count, heard, word, alive, end_ns);
    /* The kernel wakes one sleeper when it clears the word.  If that was this thread, another one may sleep on: the
     * program's, in pthread_join. */
    if (atomic_load(word) == 0)
        os_futex_wake_all_shared(word);
    return slept;
}

void wake_wait_until(uint32_t heard, uint64_t when_ns)
{
    uint64_t now = os_now_ns();
    if (when_ns > now && !sleep_on_both(heard, when_ns))
        os_futex_wait_for(&count, heard, when_ns - now);
}

void wake_wait(uint32_t heard)
{
    _Atomic uint32_t *word = atomic_load(&leader);
    uint64_t look_ns = word == NULL ? LOOK_NS : LOOK_FIRST_NS;
    while (atomic_load(&count) == heard) {
        int status;
        if (os_is_alone(&status))
            os_thread_exit(status);
        if (sleep_on_both(heard, os_now_ns() + LOOK_NS))
            continue;
        os_futex_wait_for(&count, heard, look_ns);
        look_ns = min_size(look_ns * 2, LOOK_NS);
    }
}

void wake_note_leader(void)
{
    if (atomic_load_explicit(&leader, memory_order_relaxed) == NULL)
        atomic_store(&leader, os_leader_word());
}

void wake_forget_leader(void)
{
    atomic_store(&leader, NULL);
}
