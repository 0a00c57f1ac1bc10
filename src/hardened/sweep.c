/* SPDX-License-Identifier: MIT */
#include "hardened/sweep.h"

#include "core/core.h"
#include "hardened/hardened.h"
#include "hardened/kept.h"
#include "hardened/look.h"
#include "hardened/own.h"
#include "hardened/resolve.h"
#include "hardened/roots.h"
#include "hardened/shadow.h"
#include "heap/large.h"
#include "heap/pass.h"
#include "manager/hint.h"
#include "manager/jobs.h"
#include "manager/manager.h"
#include "manager/snapshot.h"
#include "os/filter.h"
#include "os/os.h"
#include "os/stop.h"

/* So much of what is live, and of what else has to be read, may be freed and kept before a sweep begins, and before who
 * frees waits for it or sweeps; and so much in any case. */
#define SOFT_PERCENT 25u
#define HARD_PERCENT 50u
#define FLOOR_BYTES  ((size_t)4 << 20)
/* So little memory is read as a whole by the thread that frees, while the others are stopped; and so little if there
 * are none.  That takes some 10 and 30 ms, if the manager helps.  It costs less than what the manager's work does: each
 * page that is written to meanwhile takes a fault, and the lines of each block it gives back travel.  Of more, most is
 * read while the program runs, until so little is left; and if that does not come to pass, a part in each of some
 * stops. */
#define WHOLE_BYTES   ((size_t)64 << 20)
#define ALONE_BYTES   ((size_t)256 << 20)
#define STOPPED_BYTES ((size_t)2 << 20)
#define STOP_BYTES    ((size_t)16 << 20)
#define STOPS_MOST    16u
#define BETWEEN_NS    1000000ull
/* How long to wait for threads to stop: on a busy machine they have to come by a processor first, and those that came
 * wait for them; so it is tried several times.  After a failure it is tried again a while later, a longer one each
 * time. */
#define STOP_NS       10000000ull
#define STOP_MOST_NS  160000000ull
#define AGAIN_NS      200000000ull
#define FAILURES_MOST 8u
/* How long who frees waits for the manager each time. */
#define WAIT_NS 20000000ull

static _Atomic bool is_wanted;
static _Atomic uint64_t not_before_ns; /* the last one failed; 0: it did not */
static _Atomic uint32_t at_work;       /* number of the sweep the manager is in; 0: in none.  Threads sleep on it */

/* In a pass: how many there were; and that the marks of the last one are there, and blocks are given back by them. */
static uint32_t sweeps;
static bool resolves;
static unsigned failures; /* in a row */
static _Atomic size_t last_bytes; /* read by the last sweep; 0: there was none */

static struct {
    _Atomic uint64_t done, inline_done, waits, failed, bytes, ns, stop_ns, longest_stop_ns;
} count;

/* In the program's hands when the last sweep ended, SIZE_MAX before the first; and what that found of the program's
 * outside the heap, which has to be read as well. */
static _Atomic size_t live_bytes = SIZE_MAX, outside_bytes;

static void note_live(void)
{
    struct sutler_stats stats;
    snapshot_take(&stats);
    atomic_store(&live_bytes, stats.live_bytes);
}

static size_t limit_of(unsigned percent)
{
    const size_t in_use = heap_in_use_bytes(), kept = kept_bytes() + resolve_pageless_bytes();
    const size_t live = min_size(atomic_load(&live_bytes), in_use > kept ? in_use - kept : 0);
    return FLOOR_BYTES + (live + atomic_load(&outside_bytes)) / 100 * percent;
}

/* ---- giving back ---- */

/* True if it is done with all of them. */
static bool resolve_until(uint64_t end_ns)
{
    if (resolves && kept_resolve(resolve_seen, end_ns)) {
        shadow_wipe();
        resolves = false;
    }
    return !resolves;
}

/* ---- the sweep ---- */

static uint32_t number; /* of the manager's */

static bool goes_on(void)
{
    return number == sweeps && !atomic_load(&manager_stop_requested);
}

/* `is_all`: of all there is, not of what was written to. */
static void count_read(struct roots_read read, bool is_all)
{
    atomic_fetch_add(&count.bytes, read.bytes);
    if (is_all)
        atomic_store(&outside_bytes, read.outside_bytes);
}

/* Most of it while the program runs, and again what it has written to meanwhile, for as long as that becomes less.
 * False if it has to be given up. */
static bool mark_running(void)
{
    for (size_t before = SIZE_MAX;;) {
        struct roots_read read = roots_mark(os_pages_tracked, NULL, SIZE_MAX, goes_on);
        count_read(read, before == SIZE_MAX);
        if (!read.is_whole || read.bytes < STOPPED_BYTES || read.bytes > before / 4)
            return read.is_whole;
        before = read.bytes;
    }
}

/* The manager has no pointers of the program's, and writes none: a thread of the program does not wait for it to come
 * by a processor. */
static bool stop_threads(void)
{
    const uint32_t manager = atomic_load(&manager_life.tid);
    for (uint64_t most_ns = STOP_NS; most_ns <= STOP_MOST_NS; most_ns *= 4)
        if (os_threads_stop(manager, most_ns))
            return true;
    return false;
}

static void count_stop(uint64_t ns)
{
    atomic_fetch_add(&count.stop_ns, ns);
    if (ns > atomic_load(&count.longest_stop_ns))
        atomic_store(&count.longest_stop_ns, ns);
}

static struct roots_read read_stopped(enum os_pages which, const void *below, size_t most)
{
    struct roots_read read = {0};
    const uint64_t since_ns = os_now_ns();
    if (stop_threads()) {
        read = roots_mark(which, below, most, NULL);
        os_threads_resume();
    }
    count_stop(os_now_ns() - since_ns);
    count_read(read, which == os_pages_all);
    return read;
}

/* What the program wrote to since it was read.  A program that writes faster than it is read is stopped for a part of
 * the time. */
static bool mark_written(void)
{
    for (unsigned stops = 1;; stops++) {
        struct roots_read read = read_stopped(os_pages_written, NULL, stops < STOPS_MOST ? STOP_BYTES : SIZE_MAX);
        if (read.is_whole || !read.is_cut)
            return read.is_whole;
        os_sleep(BETWEEN_NS);
    }
}

/* At the last sweep; at first, what the process has resident, libraries included. */
static size_t bytes_to_read(void)
{
    const size_t last = atomic_load(&last_bytes);
    return last != 0 ? last : os_resident_bytes();
}

static bool is_alone(void)
{
    return os_thread_count() == 1u + (atomic_load(&manager_life.tid) != 0);
}

/* Not known: much. */
static bool is_little(void)
{
    const size_t bytes = bytes_to_read();
    return bytes != 0 && (bytes < WHOLE_BYTES || (bytes < ALONE_BYTES && is_alone()));
}

/* `below`: the caller is a thread of the program, whose registers are in a frame above it. */
static NOINLINE bool mark(const void *below)
{
    const size_t before = count.bytes;
    const bool tracked = below == NULL && !is_little() && os_track_begin();
    bool done;
    if (tracked) {
        done = mark_running() && mark_written();
        os_track_end();
    } else {
        done = read_stopped(os_pages_all, below, SIZE_MAX).is_whole;
    }
    if (done)
        atomic_store(&last_bytes, count.bytes - before);
    return done;
}

/* Blocks the library knows of are not pointed to by that; on the manager's stack, too, there are addresses of kept
 * ones. */
static void pass_over_own(void)
{
    static bool variables_are_noted, manager_is_noted;
    if (!variables_are_noted)
        own_note_variables();
    if (!manager_is_noted && manager_memory != NULL)
        own_note(manager_memory, MANAGER_MEMORY_BYTES);
    variables_are_noted = true;
    manager_is_noted |= manager_memory != NULL;
}

static bool prepare(void)
{
    pass_over_own();
    shadow_wipe();
    kept_collect();
    if (!shadow_prepare())
        return false;
    kept_each(resolve_expect);
    return true;
}

/* In a pass, which others may enter meanwhile if the manager does it. */
static NOINLINE bool begin(bool is_manager)
{
    /* The frame of who called it, registers and all, lies above. */
    const void *const below = is_manager ? NULL : __builtin_frame_address(0);
    ASSERT(!resolves);
    const uint64_t since_ns = os_now_ns();
    const uint32_t own = ++sweeps;
    if (below == NULL)
        number = own;
    bool done = need_begins(need_plain);
    if (done) {
        done = prepare() && mark(below);
        need_ends();
    }
    if (own != sweeps || (!done && below == NULL && atomic_load(&manager_stop_requested)))
        return false; /* another one was faster, or the manager has to leave */
    resolves = done;
    if (done) {
        note_live();
        kept_judged();
        atomic_store(&is_wanted, false);
    } else {
        shadow_wipe();
    }
    atomic_fetch_add(done ? &count.done : &count.failed, 1);
    atomic_fetch_add(&count.inline_done, done && below != NULL);
    atomic_fetch_add(&count.ns, os_now_ns() - since_ns);
    failures = done ? 0 : failures + 1;
    atomic_store(&not_before_ns, done ? 0 : os_now_ns() + (AGAIN_NS << min_size(failures, FAILURES_MOST)));
    return done;
}

/* By the manager. */
bool sweep_run(uint64_t budget_ns)
{
    if (marks.sweep == sweep_off || (!resolves && !atomic_load(&is_wanted)))
        return false;
    pass_begin();
    if (!resolves) {
        atomic_store(&at_work, 1);
        begin(true);
        atomic_store(&at_work, 0);
        os_futex_wake_all(&at_work);
    }
    bool more = !resolve_until(os_now_ns() + budget_ns);
    pass_end();
    return more;
}

static bool is_due(unsigned percent)
{
    return kept_fresh_bytes() >= limit_of(percent);
}

/* What the caller has in registers is put into its frame.  `at_once`: whatever there is. */
static NOINLINE bool sweep_here(bool at_once)
{
    __builtin_unwind_init();
    if (!slow_enter())
        return false;
    bool done = false;
    pass_begin();
    resolve_until(UINT64_MAX);
    if (at_once)
        kept_close_all();
    if (at_once || is_due(SOFT_PERCENT)) /* else another thread was faster */
        done = begin(false);
    resolve_until(UINT64_MAX);
    pass_end();
    slow_leave();
    return done;
}

/* Where nobody can look, and memory must not grow without bounds. */
static void give_back_unseen(void)
{
    if (!slow_enter())
        return;
    pass_begin();
    resolve_until(UINT64_MAX);
    kept_collect();
    kept_resolve(resolve_unseen, UINT64_MAX);
    kept_judged();
    pass_end();
    slow_leave();
}

void sweep_now(void)
{
    if (marks.sweep != sweep_off && !rcs_is_suspended())
        sweep_here(true);
}

static bool may_ever(void)
{
    bool may = need_begins(need_plain);
    if (may)
        need_ends();
    return may;
}

bool sweep_give_in(void)
{
    const uint64_t before = resolve_count();
    if (marks.sweep == sweep_off || rcs_is_suspended() || failures == 0 || (marks.sweep != sweep_auto && may_ever()))
        return false;
    give_back_unseen();
    return resolve_count() != before;
}

/* ---- when ---- */

static void ask_manager(void)
{
    atomic_store(&is_wanted, true);
    demand_raise();
    manager_hint();
}

/* So much was freed that it is time for a sweep, or past it. */
static void react(bool is_hard)
{
    const uint64_t again_ns = atomic_load(&not_before_ns);
    if (again_ns != 0 && os_now_ns() < again_ns) {
        if (is_hard && (marks.sweep == sweep_auto || !may_ever()))
            give_back_unseen();
    } else if (!manager_is_there() || is_little()) {
        sweep_here(false);
    } else if (!is_hard) {
        ask_manager();
    } else if (atomic_load(&at_work) != 0 && !is_due(2 * HARD_PERCENT)) {
        atomic_fetch_add(&count.waits, 1);
        os_futex_wait_for(&at_work, 1, WAIT_NS);
    } else {
        sweep_here(false);
    }
}

static COLD void look(void)
{
    if (is_due(SOFT_PERCENT) && !rcs_is_suspended())
        react(is_due(HARD_PERCENT));
}

/* A sweep may make room.  If not, the block is given back without looking where that may be, else never. */
static COLD void keep_without_room(void *p, size_t bytes)
{
    look();
    if (kept_add(p, bytes) != kept_no_room || rcs_is_suspended() || (marks.sweep != sweep_auto && may_ever()) ||
        !slow_enter())
        return;
    pass_begin();
    resolve_unseen(p, true);
    pass_end();
    slow_leave();
}

void sweep_keep(void *p, size_t bytes)
{
    const enum kept_added added = kept_add(p, bytes);
    if (unlikely(added == kept_much))
        look();
    else if (unlikely(added == kept_no_room))
        keep_without_room(p, bytes);
}

void sweep_note_freed(size_t bytes)
{
    if (marks.sweep != sweep_off)
        resolve_note_freed(bytes);
}

void sweep_keep_large(void *p, size_t bytes)
{
    sweep_keep(p, resolve_note_kept(bytes));
}

/* Blocks that were due stay so, and marks stay true: nobody can have got a pointer since to what none pointed to.  The
 * threads that could not be stopped are not there, nor is the manager at work. */
void sweep_recover(void)
{
    kept_recover();
    look_recover();
    failures = 0;
    atomic_store(&at_work, 0);
    atomic_store(&not_before_ns, 0);
}

void sweep_count(struct sutler_stats *stats)
{
    stats->kept_bytes = kept_bytes();
    stats->kept_blocks = kept_blocks();
    stats->live_bytes -= min_size(stats->live_bytes, stats->kept_bytes + resolve_pageless_bytes());
    stats->live_blocks -= min_size(stats->live_blocks, stats->kept_blocks);
    stats->sweeps = count.done;
    stats->failed_sweeps = count.failed;
    stats->swept_bytes = count.bytes;
    stats->swept_blocks = resolved.blocks;
    stats->unswept_blocks = resolved.unseen_blocks;
    stats->sweep_us = count.ns / 1000;
    stats->stop_us = count.stop_ns / 1000;
    stats->longest_stop_us = count.longest_stop_ns / 1000;
    stats->inline_sweeps = count.inline_done;
    stats->sweep_waits = count.waits;
}
