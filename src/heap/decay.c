/* SPDX-License-Identifier: MIT */
#include "heap/decay.h"

#include "base/bits.h"
#include "heap/pass.h"
#include "heap/purge_round.h"
#include "os/os.h"

/* A pause is so many times as long as the piece before it; and while the program opens much memory that it need not
 * have, were what is free given back. */
#define PAUSE_TIMES 32u
#define PAUSE_TIMES_GROWING 4u
/* A piece begins no work after so long.  Where slow paths are rare it is late, and makes up for that: it may be longer,
 * up to the second bound, and the pause is the shorter. */
#define PIECE_NS 50000ull
#define PIECE_NS_MAX 1000000ull
#define LATE_NS_MAX (PAUSE_TIMES * PIECE_NS_MAX)
/* More than that it was not at work: another thread had the processor, or the process was stopped. */
#define WORK_NS_MAX (10 * PIECE_NS_MAX)
#define ROUND_NS 500000000ull
#define ROUND_NS_MAX (8 * ROUND_NS) /* while rounds find nothing */
/* With less than this open there is nothing worth it; managers begin there, too. */
#define OPENED_BYTES_MIN (8ul << 20)

static _Atomic uint64_t due_ns; /* of the next piece */
_Atomic bool decay_is_under_way;

/* In a pass. */
static struct purge_round current = {.step = round_over};
static uint64_t round_due_ns, round_ns = ROUND_NS;
static size_t opened_before; /* when the round before this one began */
static unsigned pause_times = PAUSE_TIMES;
static enum purge_what next_what = purge_decay;

static void begin_round(uint64_t now_ns)
{
    const size_t opened = region_opened_bytes();
    pause_times = opened - opened_before > opened / 16 ? PAUSE_TIMES_GROWING : PAUSE_TIMES;
    opened_before = opened;
    round_begin(&current, next_what, true);
    round_due_ns = now_ns + round_ns;
}

/* As on the manager's clock (reclaim.c), one that found nothing is followed by one that takes what this one left. */
static void end_round(void)
{
    bool found = current.bytes > 0 || current.changed;
    next_what = found || current.what == purge_idle ? purge_decay : purge_idle;
    round_ns = found ? ROUND_NS : min_size(2 * round_ns, ROUND_NS_MAX);
}

/* Returns when the next piece is due. */
static uint64_t run_piece(uint64_t now_ns, uint64_t late_ns)
{
    if (round_is_over(&current)) {
        begin_round(now_ns);
        late_ns = 0;
    }
    const uint64_t since_ns = now_ns, end_ns = now_ns + max_size(PIECE_NS, late_ns / pause_times);
    do {
        round_go_on(&current);
        now_ns = os_now_ns();
    } while (!round_is_over(&current) && now_ns < end_ns);
    atomic_store_explicit(&decay_is_under_way, !round_is_over(&current), memory_order_relaxed);
    uint64_t rested_ns = now_ns + pause_times * min_size(now_ns - since_ns, WORK_NS_MAX) - late_ns;
    if (!round_is_over(&current))
        return rested_ns;
    end_round();
    return max_size(rested_ns, round_due_ns);
}

COLD void decay_in_passing(void)
{
    if (region_opened_bytes() < OPENED_BYTES_MIN)
        return;
    uint64_t now_ns = os_now_ns();
    if (now_ns < atomic_load_explicit(&due_ns, memory_order_relaxed) || !pass_try_begin())
        return;
    uint64_t due = atomic_load_explicit(&due_ns, memory_order_relaxed);
    if (now_ns >= due)
        atomic_store_explicit(&due_ns, run_piece(now_ns, min_size(now_ns - due, LATE_NS_MAX)), memory_order_relaxed);
    pass_end();
}

void decay_forget(void)
{
    current.step = round_over;
    atomic_store(&decay_is_under_way, false);
    atomic_store(&due_ns, 0);
}
