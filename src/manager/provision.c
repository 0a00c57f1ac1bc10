/* SPDX-License-Identifier: MIT
 *
 * provision: makes pages ready ahead of the program (heap/reserve.h says which), on the core the program does not use.
 * It is roused by the program, once per half a reserve, and works in pieces of one huge page or, where there are none,
 * 64 KiB, each under the pass lock.
 *
 * It stops where it would harm: when the memory left to the process is short (making ready near a limit would call the
 * system's killer), and for a while when no core is spare: its own thread had to wait for one, or more tasks want to
 * run than there are (the system would move the program's threads about to make room for it).  And where it would not
 * help: a program that fills huge pages as fast as a few are cleared finds what it cleared itself in its own cache, and
 * what the manager cleared in another.
 */
#include "heap/purge.h"
#include "heap/touch.h"
#include "manager/jobs.h"
#include "manager/place.h"
#include "os/lock.h"
#include "os/os.h"

#define HEADROOM_CHECK_BYTES (16ul << 20)
/* The time a reserve has to last: the manager may be resting, asleep, or waiting for a processor. */
#define LEAD_NS 100000000ull
/* How long nothing is made ready, nor asked for, after it did harm or would: longer each time in a row. */
#define REST_NS_MIN 1000000ull
#define REST_NS_MAX 64000000ull

static bool is_huge = true; /* the last piece became a huge page; or there was none yet */
#define NODE_NONE UINT32_MAX
static unsigned preferred_node;
static bool follows; /* the program has not said where its memory shall lie */
static size_t unchecked_bytes = HEADROOM_CHECK_BYTES;
static bool has_room;
static uint64_t rest_until_ns, rest_ns = REST_NS_MIN;
static uint64_t measured_ns; /* when the program's pace was last measured, and what it had taken by then */
static size_t measured_bytes;
static bool outruns; /* and whether it was too fast then */
static uint64_t none_seen_ns; /* when, at the last look, no processor was to spare; 0: one was */
static uint64_t clearing_ns; /* what a huge page takes; 0: not known */

/* Whether the limits leave room; asked anew every few pieces. */
static bool room_left(size_t bytes)
{
    unchecked_bytes += bytes;
    if (unchecked_bytes >= HEADROOM_CHECK_BYTES) {
        unchecked_bytes = 0;
        has_room = os_memory_headroom() > MEMORY_HEADROOM_MIN;
        if (!has_room)
            atomic_store(&memory_is_short, true); /* until the pressure job finds otherwise */
    }
    return has_room;
}

void provision_start(void)
{
    preferred_node = NODE_NONE;
    follows = os_has_default_memory_policy();
}

/* Pages go to the node of the thread that will use them; or as numactl or the program says: the manager's thread has
 * that policy from the thread that made it. */
static void settle_on(unsigned node)
{
    if (follows && node != preferred_node)
        os_prefer_node(node);
    preferred_node = node;
}

static bool provide_piece(void)
{
    struct reserve_piece piece;
    if (!reserve_next(is_huge, &piece))
        return false;
    settle_on(piece.node);
    uint64_t start_ns = os_now_ns();
    enum touched touched = touch_piece(&piece);
    if (touched != touched_taken)
        is_huge = touched == touched_huge;
    if (touched == touched_huge) {
        /* The least of late: it may have been interrupted. */
        uint64_t took_ns = os_now_ns() - start_ns;
        clearing_ns = clearing_ns == 0 ? took_ns : min_size(took_ns, clearing_ns + clearing_ns / 8);
    }
    return room_left(piece.bytes);
}

/* Returns false: until then there is nothing to run for. */
static bool rest(uint64_t now_ns)
{
    rest_until_ns = now_ns + rest_ns;
    rest_ns = min_size(rest_ns * 2, REST_NS_MAX);
    reserve_rest(rest_until_ns);
    return false;
}

/* The program outruns if it takes huge pages in less than three times the time it takes to clear one. */
static void measure_pace(uint64_t now_ns)
{
    const uint64_t shortest_ns = 1000000;
    struct reserve_counts counts = reserve_counts();
    size_t taken_bytes = counts.hit_bytes + counts.miss_bytes, bytes = taken_bytes - measured_bytes;
    uint64_t past_ns = now_ns - measured_ns;
    if (past_ns < shortest_ns)
        return;
    if (measured_ns != 0) {
        outruns = bytes / RESERVE_PIECE_MAX * clearing_ns * 3 > past_ns;
        reserve_expect(bytes * (LEAD_NS / 1000) / (past_ns / 1000));
    }
    measured_ns = now_ns;
    measured_bytes = taken_bytes;
}

/* True if no processor is to spare, and none was at the last look: some other task may always want one for a moment. */
static bool is_in_the_way(uint64_t now_ns)
{
    bool none_was = none_seen_ns != 0 && now_ns - none_seen_ns < 2 * REST_NS_MAX;
    bool none_is = place_is_taken();
    none_seen_ns = none_is ? now_ns : 0;
    return none_was && none_is;
}

bool provision_run(uint64_t budget_ns)
{
    uint64_t start_ns = os_now_ns(), start_cpu_us = os_thread_cpu_us(), now_ns = start_ns;
    if (now_ns < rest_until_ns)
        return false;
    measure_pace(now_ns);
    if (!room_left(HEADROOM_CHECK_BYTES) || is_in_the_way(now_ns))
        return rest(now_ns);
    bool more = true;
    while (more && now_ns - start_ns < budget_ns) {
        lock_take(&purge_lock);
        more = provide_piece();
        bool wanted = lock_is_contended(&purge_lock);
        lock_release(&purge_lock);
        now_ns = os_now_ns();
        if (wanted)
            break;
        if (is_huge && outruns)
            return rest(now_ns);
    }
    /* Half of the time somewhere else than on a processor: none is spare. */
    const uint64_t noticeable_ns = 1000000;
    uint64_t used_ns = (os_thread_cpu_us() - start_cpu_us) * 1000;
    if (now_ns - start_ns > 2 * used_ns + noticeable_ns)
        return rest(now_ns);
    rest_ns = REST_NS_MIN;
    return more;
}
