/* SPDX-License-Identifier: MIT
 *
 * provision: prefaults pages ahead of the program (heap/prefault_pool.h says which), on a processor that the program
 * does not use.  The program wakes it when half of the pool is used up.  It works in pieces, each under the pass lock:
 * of one huge page or, where these are dear or not to be had, of 64 KiB.
 *
 * follow and watch: the same in large blocks that the program fills (heap/filling.h).  The first looks often while one
 * is being filled; the second, on the clock, whether it has to begin again.
 *
 * collapse: makes huge pages of what the program filled in small ones (heap/collapse.h).
 *
 * They stop where they would harm: when little memory is left to the process, because prefaulting near a limit would
 * call the system's killer; and for a while when no processor is spare, that is, when its own thread had to wait for
 * one or more tasks want to run than there are processors, and the system would move the program's threads to make room
 * for it.
 */
#include "heap/collapse.h"
#include "heap/demand.h"
#include "heap/filling.h"
#include "heap/huge_price.h"
#include "heap/pass.h"
#include "heap/prefault.h"
#include "manager/headroom.h"
#include "manager/jobs.h"
#include "manager/spare_cpu.h"
#include "os/os.h"

/* Between two moves off the program's cpu. */
#define MOVE_NS 10000000ull
/* Between two looks whether a processor is to spare: longer each time one was, since a look reads a file. */
#define SPARE_LOOK_NS_MIN 1000000ull
#define SPARE_LOOK_NS_MAX 10000000000ull
/* How long it rests after it did harm, or would have: longer each time in a row. */
#define REST_NS_MIN 1000000ull
#define REST_NS_MAX 64000000ull

#define NODE_NONE UINT32_MAX
static unsigned preferred_node;
static uint64_t moved_ns;    /* off the program's cpu */
static bool follows;         /* the program has not said where its memory shall lie */
static uint64_t rest_until_ns, rest_ns = REST_NS_MIN;
static uint64_t measured_ns; /* when the program's pace was last measured, and what it had taken by then */
static size_t measured_bytes;
static uint64_t spare_look_ns; /* the last look whether a processor was to spare */
static uint64_t spare_wait_ns; /* until the next */
static bool none_seen;         /* and whether none was */

void provision_start(void)
{
    headroom_bytes(os_now_ns());
    collapse_start();
    preferred_node = NODE_NONE;
    spare_wait_ns = 0;
    follows = os_has_default_memory_policy();
}

/* Pages go to the node of the thread that will use them, unless numactl or the program has set a policy, which the
 * manager inherits. */
static void prefer_node(unsigned node)
{
    if (follows && node != preferred_node)
        os_prefer_node(node);
    preferred_node = node;
}

/* It was woken on that thread's cpu, and a system that finds the others busy on the average would leave it there, to
 * interrupt the program for every piece. */
static void leave_cpu(unsigned cpu)
{
    uint64_t now = os_now_ns();
    if (now - moved_ns >= MOVE_NS && os_leave_cpu(cpu))
        moved_ns = now;
}

static bool provide(uint64_t now_ns)
{
    struct prefault_piece piece;
    if (!prefault_pool_next(huge_price_is_fair(now_ns), &piece))
        return false;
    headroom_use(piece.bytes);
    prefer_node(piece.demanded_at.node);
    leave_cpu(piece.demanded_at.cpu);
    prefault_piece(&piece);
    return true;
}

/* The same ahead of who fills a large block. */
static bool follow(uint64_t now_ns)
{
    struct prefault_piece piece;
    prefault_learn_price();
    if (!huge_price_is_fair(now_ns) || !filling_next(&piece))
        return false;
    headroom_use(piece.bytes);
    prefer_node(piece.demanded_at.node);
    return filling_bring(&piece);
}

/* Begins a rest; returns false, for provision_run: there is nothing to do until it is over. */
static bool rest(uint64_t now_ns)
{
    spare_wait_ns = 0;
    rest_until_ns = now_ns + rest_ns;
    rest_ns = min_size(rest_ns * 2, REST_NS_MAX);
    prefault_pool_rest(rest_until_ns);
    return false;
}

/* By superblocks since the start, of memory that was never used. */
static size_t taken_bytes(void)
{
    struct prefault_pool_counts counts = prefault_pool_counts();
    return counts.hit_bytes + counts.miss_bytes;
}

static void measure_pace(uint64_t now_ns)
{
    const uint64_t shortest_ns = 1000000;
    const size_t taken = taken_bytes(), bytes = taken - measured_bytes;
    uint64_t past_ns = now_ns - measured_ns;
    if (past_ns < shortest_ns)
        return;
    if (measured_ns != 0)
        prefault_pool_expect(bytes * (PREFAULT_LEAD_NS / 1000) / (past_ns / 1000));
    measured_ns = now_ns;
    measured_bytes = taken;
}

/* True if no processor is to spare, and none was at the last look: some other task may always want one for a moment. */
static bool is_in_the_way(uint64_t now_ns)
{
    uint64_t since_ns = now_ns - spare_look_ns;
    if (since_ns < max_size(spare_wait_ns, SPARE_LOOK_NS_MIN))
        return false;
    bool none_was = none_seen && since_ns < 2 * REST_NS_MAX;
    none_seen = spare_cpu_is_busy();
    spare_look_ns = now_ns;
    spare_wait_ns = none_seen ? 0 : min_size(max_size(2 * spare_wait_ns, SPARE_LOOK_NS_MIN), SPARE_LOOK_NS_MAX);
    return none_was && none_seen;
}

/* Piece by piece, until there is none more, the budget is used up or somebody waits. */
static bool run(bool (*one)(uint64_t now_ns), uint64_t budget_ns)
{
    uint64_t start_ns = os_now_ns(), start_cpu_us = os_thread_cpu_us(), now_ns = start_ns;
    if (now_ns < rest_until_ns)
        return false;
    if (headroom_is_short(now_ns) || is_in_the_way(now_ns))
        return rest(now_ns);
    bool more;
    do {
        pass_begin();
        more = one(now_ns);
        bool wanted = pass_is_wanted() || atomic_load(&manager_stop_requested);
        pass_end();
        now_ns = os_now_ns();
        if (wanted)
            break;
    } while (more && now_ns - start_ns < budget_ns && !headroom_is_short(now_ns));
    /* It spent half of the time waiting for a processor: none is spare. */
    const uint64_t noticeable_ns = 1000000;
    uint64_t used_ns = (os_thread_cpu_us() - start_cpu_us) * 1000;
    if (now_ns - start_ns > 2 * used_ns + noticeable_ns)
        return rest(now_ns);
    rest_ns = REST_NS_MIN;
    return more;
}

bool provision_run(uint64_t budget_ns)
{
    measure_pace(os_now_ns());
    return run(provide, budget_ns);
}

static enum filling look(void)
{
    pass_begin();
    enum filling seen = filling_look(os_now_ns());
    pass_end();
    return seen;
}

/* While a block is being filled, and a little longer. */
bool follow_run(uint64_t budget_ns)
{
    const unsigned rests_max = 40;
    static unsigned rests;
    enum filling seen = look();
    if (filling_is_due())
        run(follow, budget_ns);
    rests = seen == filling_rests ? rests + 1 : 0;
    if (seen != filling_none && rests < rests_max)
        return true;
    rests = 0;
    return false;
}

bool watch_run(uint64_t budget_ns)
{
    (void)budget_ns;
    enum filling seen = look();
    if (seen == filling_goes_on)
        demand_raise();
    return seen != filling_none;
}

/* It has taken more since the last call than a slow program would: whoever grows does not wait for a page that is
 * copied. */
static bool is_growing(void)
{
    const size_t much_bytes = 1ul << 20;
    static size_t had_bytes;
    const size_t bytes = taken_bytes() - had_bytes;
    had_bytes += bytes;
    return bytes > much_bytes;
}

/* Where no processor is to spare it looks again a second later: this is not in a hurry. */
static bool has_spare(uint64_t now_ns)
{
    const uint64_t second_ns = 1000000000;
    static uint64_t look_ns;
    if (now_ns < look_ns)
        return false;
    if (!is_in_the_way(now_ns))
        return true;
    look_ns = now_ns + second_ns;
    return false;
}

static uint64_t collapse_ns; /* until the next call */

uint64_t collapse_wait_ns(void)
{
    return collapse_ns;
}

bool collapse_run(uint64_t budget_ns)
{
    (void)budget_ns;
    uint64_t now_ns = os_now_ns();
    collapse_ns = 0;
    if (!collapse_is_wanted(now_ns) || headroom_bytes(now_ns) <= MEMORY_HEADROOM_MIN)
        return false;
    if (now_ns < rest_until_ns)
        collapse_ns = rest_until_ns - now_ns;
    if (now_ns < rest_until_ns || is_growing())
        return true;
    if (!has_spare(now_ns))
        return false;
    pass_begin();
    collapse_ns = collapse_next(now_ns);
    pass_end();
    return collapse_ns != 0;
}
