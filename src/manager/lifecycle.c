/* SPDX-License-Identifier: MIT
 *
 * The manager's life: whether there is one, and how it comes and goes.
 *
 *                 a slow path finds it worthwhile
 *        absent ---------------------------------> busy <-----> asleep         forbidden: from any of them, for ever
 *           ^                                       |
 *           +---------------------------------------+
 *                 it was asked to stop, or no thread could be made
 *
 * The state changes by compare-and-swap only, and with it the generation: what was decided for one manager does not
 * change the state of the next.
 *
 * Whoever needs it gone counts himself in `parks`, asks it to stop, and waits until the state and then the thread say
 * so; none is started while anybody is counted.  Whoever starts one marks it busy and then looks at the count; whoever
 * parks it counts himself and then looks at the state.  Nobody holds a lock.
 *
 * Whatever else keeps it away does so for a time, by manager_stay_away: a park that has ended, a fork, a refused clone,
 * a lost quota.
 */
#include "manager/lifecycle.h"

#include <errno.h>

#include "base/bits.h"
#include "heap/demand.h"
#include "heap/large.h"
#include "heap/pass.h"
#include "heap/span.h"
#include "manager/bell.h"
#include "manager/clone.h"
#include "manager/notice.h"
#include "manager/place.h"
#include "manager/report.h"
#include "options/options.h"
#include "os/os.h"
#include "rcs/hot.h"
#include "rcs/rcs.h"

/* Slow paths between two wakes: a wake costs the program as much as five page faults. */
#define NOTICES_PER_WAKE 256u
/* Slow paths between two looks whether one can be started, or whether what is in use is resident. */
#define ASK_EVERY 16u
/* How long it stays away where no thread can be made. */
#define REFUSED_NS 1000000000ull
/* At a fork: how long the program waits for it. */
#define FORK_WAIT_NS 10000000ull
/* After a park or a fork, which are rarely alone: starting one anew each time costs as much as the call itself. */
#define PARKED_NS 250000000ull
#define STACK_BYTES (256ul << 10)
/* Below the thread pointer lie the static thread-local variables of every library, above it libc's thread structure
 * with errno, the stack protector's canary and the rseq area: room enough for all of them. */
#define THREAD_BLOCK_HALF (64ul << 10)

#define STATE_BITS 2
#define STATE_MASK ((1u << STATE_BITS) - 1)

struct manager_life manager_life;
struct manager_starter manager_starter;

/* Defined where changes of credentials park the manager, in the shared library: whether the program's calls come there. */
extern bool manager_sees_credentials __attribute__((weak));

static uint32_t process;          /* the one it was started in; 0: none was */
static _Atomic uint32_t last_tid; /* of the last one started; 0 once it is known to be gone */
static _Atomic uint32_t notices, asked;
static size_t start_bytes = MANAGER_START_BYTES; /* in use: from here on it is worthwhile */
static char *block; /* stack and thread block, kept for the next thread */
THREAD_LOCAL uint16_t own_calls; /* the calling thread's part of manager_life.calls */

/* ---- states ---- */

static enum manager_state state_in(uint32_t word)
{
    return (enum manager_state)(word & STATE_MASK);
}

bool manager_change(enum manager_state from, enum manager_state to)
{
    uint32_t seen = atomic_load(&manager_life.word);
    return state_in(seen) == from && atomic_compare_exchange_strong(&manager_life.word, &seen, (seen & ~STATE_MASK) | to);
}

/* A new generation begins. */
static bool begin(void)
{
    uint32_t seen = atomic_load(&manager_life.word);
    uint32_t next = (((seen >> STATE_BITS) + 1) << STATE_BITS) | manager_busy;
    return state_in(seen) == manager_absent && atomic_compare_exchange_strong(&manager_life.word, &seen, next);
}

/* And has ended, or was never to be. */
static void end(void)
{
    manager_change(manager_busy, manager_absent);
    os_futex_wake_all(&manager_life.word);
}

void manager_forbid(void)
{
    uint32_t seen = atomic_load(&manager_life.word);
    while (!atomic_compare_exchange_strong(&manager_life.word, &seen, (seen & ~STATE_MASK) | manager_forbidden))
        continue;
    os_futex_wake_all(&manager_life.word);
}

static void ask_to_stop(void)
{
    atomic_store(&manager_is_called_off, true);
    bell_ring();
}

void manager_stay_away(uint64_t for_ns)
{
    uint64_t until_ns = os_now_ns() + for_ns, seen = atomic_load(&manager_life.not_before_ns);
    while (seen < until_ns && !atomic_compare_exchange_strong(&manager_life.not_before_ns, &seen, until_ns))
        continue;
    if (manager_state() == manager_busy || manager_state() == manager_asleep)
        ask_to_stop();
}

/* ---- starting; by a thread of the program, all its signals blocked, since a handler may park ---- */

/* Its sections must find the cid of nobody where they look for it, and the kernel nothing at all.  Where libc has
 * the rseq area among very large thread-local variables that is beyond the thread block. */
static bool thread_block_covers(ptrdiff_t offset)
{
    return offset >= -(ptrdiff_t)THREAD_BLOCK_HALF && offset + CACHE_LINE <= (ptrdiff_t)THREAD_BLOCK_HALF;
}

static bool is_wanted_ever(void)
{
    if (sync_mode == sync_rcs && !(thread_block_covers(hot.rseq) && thread_block_covers(hot.cid)))
        return false;
    if (option_get(option_manager) == manager_off)
        return false;
    if (option_get(option_manager) == manager_on)
        return true;
    /* In doubt (an emulator or debugger without rseq, privileges that could be dropped unseen): not. */
    bool sees_credentials = &manager_sees_credentials != NULL && manager_sees_credentials;
    return sync_mode == sync_rcs && (sees_credentials || !os_is_privileged());
}

/* The thread's stack and what its thread pointer points to; NULL without memory. */
static char *prepare_block(void)
{
    if (block == NULL)
        block = os_map(STACK_BYTES + 2 * THREAD_BLOCK_HALF);
    if (block == NULL)
        return NULL;
    char *thread_pointer = block + STACK_BYTES + THREAD_BLOCK_HALF;
    os_thread_block_prepare(thread_pointer);
    if (sync_mode == sync_rcs)
        *(uint32_t *)(thread_pointer + hot.cid) = slot_nobody;
    background_thread_set(thread_pointer);
    return thread_pointer;
}

static void run(void)
{
    manager_run();
    end();
}

/* Returns 0 or -errno. */
static long make_thread(void)
{
    if (!is_wanted_ever())
        return -EPERM;
    if (atomic_load(&manager_life.tid) != 0) /* one has come and gone since may_start, but not left its stack yet */
        return -ECANCELED;
    char *thread_pointer = place_may_be_spare() ? prepare_block() : NULL;
    if (thread_pointer == NULL)
        return -EAGAIN;
    bell_note_leader();
    manager_starter.tid = os_thread_id();
    manager_starter.cpu = os_current_place().cpu;
    process = os_process_id();
    atomic_store(&manager_is_called_off, false);
    atomic_store(&manager_life.tid, 1); /* until the kernel writes it */
    /* Looked at after it was marked busy: partner of manager_park and manager_forbid. */
    long result = -ECANCELED;
    if (atomic_load(&manager_life.parks) == 0 && manager_state() == manager_busy) {
        atomic_store(&mapping_is_helped, true);
        result = clone_thread(run, block + STACK_BYTES, thread_pointer, &manager_life.tid);
    }
    if (result < 0) {
        atomic_store(&mapping_is_helped, false);
        atomic_store(&manager_life.tid, 0);
        os_futex_wake_all_shared(&manager_life.tid);
        return result;
    }
    atomic_store(&last_tid, (uint32_t)result);
    return 0;
}

static void start(void)
{
    uint64_t signals = os_block_signals();
    if (begin()) {
        long error = make_thread();
        if (error == -EAGAIN || error == -ENOMEM) /* no process more for this user, no memory, no cpu: not now */
            manager_stay_away(REFUSED_NS);
        else if (error != 0 && error != -ECANCELED)
            manager_forbid();
        if (error != 0)
            end();
    }
    os_restore_signals(signals);
}

/* ---- whether ---- */

/* Nobody wants it gone, and the last one is. */
static bool may_start(void)
{
    return atomic_load(&manager_life.parks) == 0 && atomic_load(&manager_life.tid) == 0;
}

static bool is_time(void)
{
    uint64_t not_before_ns = atomic_load(&manager_life.not_before_ns);
    if (not_before_ns == 0)
        return true;
    if (atomic_fetch_add(&notices, 1) % ASK_EVERY != 0 || os_now_ns() < not_before_ns)
        return false;
    atomic_compare_exchange_strong(&manager_life.not_before_ns, &not_before_ns, 0);
    return true;
}

/* What is in use may be address space rather than memory: a superblock of large blocks is 4 MiB, with one block in it
 * or all.  The system is asked once in a while. */
static bool is_resident(void)
{
    return atomic_fetch_add(&asked, 1) % ASK_EVERY == 0 && os_resident_peak_bytes() >= MANAGER_START_BYTES;
}

static size_t in_use_bytes(void)
{
    return span_in_use_bytes() + mapping_in_use_bytes();
}

/* A forked child has its parent's heap and mostly lives for a moment: it is given time. */
static bool is_worthwhile(void)
{
    size_t in_use = in_use_bytes();
    bool is_large = in_use >= start_bytes ||
                    (in_use >= MANAGER_START_BYTES && atomic_fetch_add(&notices, 1) >= 4 * NOTICES_PER_WAKE);
    return is_large && is_time() && (option_get(option_manager) == manager_on || is_resident());
}

COLD void manager_notice_slow(enum manager_state state)
{
    if (state == manager_absent) {
        if (may_start() && is_worthwhile())
            start();
    } else if (state != manager_forbidden) {
        uint32_t raised = demand_raised;
        bool is_told = atomic_compare_exchange_strong(&heap_demand, &raised, demand_told);
        if (is_told || (state == manager_asleep && atomic_fetch_add(&notices, 1) % NOTICES_PER_WAKE == 0))
            bell_ring();
    }
}

COLD void manager_notice_unmapping_slow(void)
{
    atomic_store(&asked, 0); /* it is asked now */
    manager_notice_slow(manager_absent);
}

/* ---- parking ---- */

static uint64_t left_ns(uint64_t until_ns)
{
    uint64_t now_ns = os_now_ns();
    return now_ns < until_ns ? until_ns - now_ns : 0;
}

/* After it was asked to stop.  Returns whether it has gone before so much time has passed. */
static bool wait_gone(uint64_t most_ns)
{
    uint64_t since_ns = os_now_ns(), until_ns = most_ns < UINT64_MAX - since_ns ? since_ns + most_ns : UINT64_MAX;
    bool waited = false;
    for (uint32_t word; (word = atomic_load(&manager_life.word)), left_ns(until_ns) != 0; waited = true) {
        if (state_in(word) != manager_busy && state_in(word) != manager_asleep)
            break;
        os_futex_wait_for(&manager_life.word, word, left_ns(until_ns));
    }
    for (uint32_t tid; (tid = atomic_load(&manager_life.tid)) != 0 && left_ns(until_ns) != 0; waited = true)
        os_futex_wait_shared(&manager_life.tid, tid, left_ns(until_ns));
    if (waited)
        wait_count(since_ns);
    if (atomic_load(&manager_life.tid) != 0)
        return false;
    /* The kernel counts a thread for a moment longer, and refuses new namespaces meanwhile. */
    uint32_t gone = atomic_load(&last_tid);
    if (gone != 0) {
        os_thread_wait_gone(gone);
        atomic_compare_exchange_strong(&last_tid, &gone, 0);
    }
    return true;
}

void manager_park(bool may_wait)
{
    atomic_fetch_add(&manager_life.parks, 1); /* before it looks at the state: partner of make_thread */
    ask_to_stop();
    if (may_wait)
        wait_gone(UINT64_MAX);
}

void manager_resume(void)
{
    manager_stay_away(PARKED_NS);
    uint32_t parks = atomic_load(&manager_life.parks);
    while (parks > 0 && !atomic_compare_exchange_weak(&manager_life.parks, &parks, parks - 1))
        continue;
}

void manager_call_begins(void)
{
    own_calls++;
    atomic_fetch_add(&manager_life.calls, 1);
}

void manager_call_ends(void)
{
    atomic_fetch_sub(&manager_life.calls, 1);
    own_calls--;
}

bool manager_is_anothers(void)
{
    return process != 0 && process != os_process_id();
}

/* ---- fork ---- */

/* A program of one thread may see that it has two when it forks (Python looks, and warns): so there is none at that
 * moment, nor right after it. */
static void leave_for_fork(void)
{
    const unsigned one_and_the_manager = 2;
    if (atomic_load(&manager_life.tid) == 0 || os_thread_count() != one_and_the_manager)
        return;
    manager_stay_away(PARKED_NS);
    wait_gone(FORK_WAIT_NS);
    atomic_store(&asked, 0);
}

bool manager_fork_prepare(bool may_wait)
{
    if (may_wait)
        leave_for_fork();
    return pass_pause(may_wait ? FORK_WAIT_NS : 0);
}

void manager_fork_parent(void)
{
    pass_resume();
}

/* In a child, which has only the calling thread: the others will not come back to resume. */
static void forget_calls(void)
{
    uint32_t others = atomic_load(&manager_life.calls) - own_calls, parks = atomic_load(&manager_life.parks);
    atomic_store(&manager_life.parks, parks > others ? parks - others : 0);
    atomic_store(&manager_life.calls, own_calls);
}

void manager_forget(void)
{
    pass_forget();
    bell_forget_leader();
    report_forget();
    atomic_store(&memory_is_short, false);
    atomic_store(&mapping_is_helped, false);
    start_bytes = in_use_bytes() + MANAGER_START_BYTES;
    atomic_store(&notices, 0);
    atomic_store(&manager_life.tid, 0);
    atomic_store(&last_tid, 0);
    atomic_store(&manager_life.not_before_ns, 0);
    process = 0;
    forget_calls();
    uint32_t word = atomic_load(&manager_life.word);
    if (state_in(word) != manager_forbidden)
        atomic_store(&manager_life.word, (word & ~STATE_MASK) | manager_absent);
}
