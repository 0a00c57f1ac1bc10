/* SPDX-License-Identifier: MIT
 *
 * provision: makes pages ready ahead of the program (heap/reserve.h says which), on the core the program does not use.
 * It is roused by the program, once per half a reserve, and works in pieces of one huge page or, where there are none,
 * 64 KiB, each under the pass lock.
 *
 * It stops where it would harm: when the memory left to the process is short (making ready near a limit would call the
 * system's killer), and for a while when its own thread had to wait for a processor (no core is spare).
 */
#include "heap/purge.h"
#include "heap/reserve.h"
#include "manager/jobs.h"
#include "os/lock.h"
#include "os/os.h"

#define HEADROOM_CHECK_BYTES (16ul << 20)
/* How long nothing is made ready, nor asked for, after it did harm or would. */
#define REST_NS 50000000ull

static bool is_huge = true; /* the last piece became a huge page */
#define NODE_NONE UINT32_MAX
static unsigned preferred_node;
static bool follows; /* the program has not said where its memory shall lie */
static size_t unchecked_bytes = HEADROOM_CHECK_BYTES;
static bool has_room;
static uint64_t rest_until_ns;

/* Whether the limits leave room; asked anew every few pieces. */
static bool room_left(size_t bytes)
{
    unchecked_bytes += bytes;
    if (unchecked_bytes >= HEADROOM_CHECK_BYTES) {
        unchecked_bytes = 0;
        has_room = os_memory_headroom() > MEMORY_HEADROOM_MIN;
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
    is_huge = os_make_resident(piece.address, piece.bytes);
    return room_left(piece.bytes);
}

/* Returns false: until then there is nothing to run for. */
static bool rest(uint64_t now_ns)
{
    rest_until_ns = now_ns + REST_NS;
    reserve_rest(rest_until_ns);
    return false;
}

bool provision_run(uint64_t budget_ns)
{
    uint64_t start_ns = os_now_ns(), start_cpu_us = os_thread_cpu_us(), now_ns = start_ns;
    if (now_ns < rest_until_ns)
        return false;
    if (!room_left(HEADROOM_CHECK_BYTES))
        return rest(now_ns);
    bool more = true;
    while (more && now_ns - start_ns < budget_ns) {
        lock_take(&purge_lock);
        more = provide_piece();
        bool wanted = lock_is_contended(&purge_lock);
        lock_release(&purge_lock);
        if (wanted)
            break;
        now_ns = os_now_ns();
    }
    /* Half of the time somewhere else than on a processor: none is spare. */
    const uint64_t noticeable_ns = 1000000;
    uint64_t used_ns = (os_thread_cpu_us() - start_cpu_us) * 1000;
    if (now_ns - start_ns > 2 * used_ns + noticeable_ns)
        return rest(now_ns);
    return more;
}
