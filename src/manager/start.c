/* SPDX-License-Identifier: MIT
 *
 * Whether a manager is worthwhile, and how one is made.
 *
 * Whoever starts one marks it busy and then looks at the count of parks; whoever parks it counts the park and then
 * looks at the state (park.c).  Neither holds a lock.
 */
#include <errno.h>

#include "base/bits.h"
#include "heap/demand.h"
#include "heap/filling.h"
#include "heap/large.h"
#include "heap/span.h"
#include "manager/wake.h"
#include "manager/clone.h"
#include "manager/hint.h"
#include "manager/spare_cpu.h"
#include "manager/state.h"
#include "options/options.h"
#include "os/hooks.h"
#include "os/lock.h"
#include "os/os.h"
#include "rcs/hot.h"
#include "rcs/rcs.h"

/* Slow paths between two wakes: a wake costs the program as much as five page faults. */
#define HINTS_PER_WAKE 256u
/* Slow paths between two looks: whether one can be started, and whether what is in use is resident. */
#define ASK_EVERY 16u
/* How long it stays away where no thread can be made. */
#define REFUSED_NS 1000000000ull
#define STACK_BYTES (256ul << 10)
/* Below the thread pointer lie the static thread-local variables of every library, above it libc's thread structure
 * with errno, the stack protector's canary and the rseq area: room enough for all of them. */
#define THREAD_BLOCK_HALF (64ul << 10)

bool manager_sees_credentials;

static _Atomic uint32_t hints, asked;
static size_t start_bytes = MANAGER_START_BYTES; /* in use: from here on it is worthwhile */
char *manager_memory; /* stack and thread block, kept for the next thread */

/* ---- starting; by a thread of the program, all its signals blocked, since a handler may park ---- */

/* The manager's sections must find the cid of nobody where they look for a cid, and the kernel no rseq area.  Where
 * libc has put that area beyond very large thread-local variables, it lies outside the thread block. */
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
    return sync_mode == sync_rcs && (manager_sees_credentials || !os_is_privileged());
}

/* The thread's stack and what its thread pointer points to; NULL without memory. */
static char *prepare_block(void)
{
    _Static_assert(MANAGER_MEMORY_BYTES == STACK_BYTES + 2 * THREAD_BLOCK_HALF, "the stack, and both halves");
    if (manager_memory == NULL)
        manager_memory = os_map(MANAGER_MEMORY_BYTES);
    if (manager_memory == NULL)
        return NULL;
    char *thread_pointer = manager_memory + STACK_BYTES + THREAD_BLOCK_HALF;
    os_thread_block_prepare(thread_pointer);
    if (sync_mode == sync_rcs)
        *(uint32_t *)(thread_pointer + hot.cid) = slot_nobody;
    background_thread_set(thread_pointer);
    return thread_pointer;
}

static void run(void)
{
    lock_forget_held();
    manager_run();
    manager_end();
}

/* Returns 0 or -errno. */
static long make_thread(void)
{
    if (!is_wanted_ever())
        return -EPERM;
    if (atomic_load(&manager_life.tid) != 0) /* one has come and gone since may_start, but not left its stack yet */
        return -ECANCELED;
    char *thread_pointer = spare_cpu_is_possible() && !os_is_hooked() ? prepare_block() : NULL;
    if (thread_pointer == NULL)
        return -EAGAIN;
    wake_note_leader();
    manager_life.starter.tid = os_thread_id();
    manager_life.starter.cpu = os_current_place().cpu;
    manager_life.process = os_process_id();
    atomic_store(&manager_stop_requested, false);
    atomic_store(&manager_life.tid, 1); /* until the kernel writes it */
    /* Looked at after it was marked busy: partner of manager_park and manager_forbid. */
    long result = -ECANCELED;
    if (atomic_load(&manager_life.parks) == 0 && manager_state() == manager_busy) {
        atomic_store(&unmap_is_async, true);
        atomic_store(&manager_is_missing, false);
        rcs_expect_manager();
        result = clone_thread(run, manager_memory + STACK_BYTES, thread_pointer, &manager_life.tid);
    }
    if (result < 0) {
        atomic_store(&unmap_is_async, false);
        atomic_store(&manager_life.tid, 0);
        os_futex_wake_all_shared(&manager_life.tid);
        return result;
    }
    atomic_store(&manager_life.last_tid, (uint32_t)result);
    return 0;
}

static void start(void)
{
    uint64_t signals = os_block_signals();
    if (manager_begin()) {
        long error = make_thread();
        if (error == -EAGAIN || error == -ENOMEM) /* no process more for this user, no memory, no cpu: not now */
            manager_stay_away(REFUSED_NS);
        else if (error != 0 && error != -ECANCELED)
            manager_forbid();
        if (error != 0) {
            atomic_store(&manager_is_missing, true);
            manager_end();
        }
    }
    os_restore_signals(signals);
}

/* ---- whether ---- */

static bool is_time(void)
{
    uint64_t not_before_ns = atomic_load(&manager_life.not_before_ns);
    if (not_before_ns == 0)
        return true;
    if (atomic_fetch_add(&hints, 1) % ASK_EVERY != 0 || os_now_ns() < not_before_ns)
        return false;
    atomic_compare_exchange_strong(&manager_life.not_before_ns, &not_before_ns, 0);
    return true;
}

/* What is in use may be address space rather than memory: a superblock of large blocks is 4 MiB, with one block in it
 * or all.  The system is asked once in a while; not where a large block may be about to be filled. */
static bool is_resident(void)
{
    return atomic_fetch_add(&asked, 1) % ASK_EVERY == 0 && os_resident_peak_bytes() >= MANAGER_START_BYTES;
}

/* A forked child has its parent's heap and mostly lives for a moment: it is given time. */
static bool is_worthwhile(void)
{
    size_t in_use = heap_in_use_bytes();
    bool is_large = in_use >= start_bytes ||
                    (in_use >= MANAGER_START_BYTES && atomic_fetch_add(&hints, 1) >= 4 * HINTS_PER_WAKE);
    bool is_expected = option_get(option_manager) == manager_on || atomic_load(&filling_is_new);
    return is_large && is_time() && (is_expected || is_resident());
}

COLD void manager_hint_slow(enum manager_state state)
{
    if (state == manager_absent) {
        /* Nobody wants it gone, and the last one has left. */
        bool may_start = atomic_load(&manager_life.parks) == 0 && atomic_load(&manager_life.tid) == 0;
        if (may_start && is_worthwhile())
            start();
    } else if (state != manager_forbidden) {
        uint32_t raised = demand_raised;
        bool is_delivered = atomic_compare_exchange_strong(&heap_demand, &raised, demand_delivered);
        if (is_delivered || (state == manager_asleep && atomic_fetch_add(&hints, 1) % HINTS_PER_WAKE == 0))
            wake_manager();
    }
}

void manager_start_look(void)
{
    atomic_store(&asked, 0);
}

void manager_start_forget(void)
{
    start_bytes = heap_in_use_bytes() + MANAGER_START_BYTES;
    atomic_store(&hints, 0);
}
