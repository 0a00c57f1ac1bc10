/* SPDX-License-Identifier: MIT */
#include "heap/allowance.h"

/* At first, until somebody has looked. */
#define FIRST_BYTES (16ll << 20)
/* At least so much may come back. */
#define RETURNED_MIN (4ll << 20)
/* Shorter blocks are touched at once, or make no difference. */
#define PROMISE_BYTES_MIN (4ul << 20)

_Atomic int64_t allowance_left = FIRST_BYTES, allowance_mark = FIRST_BYTES / 2;
static _Atomic int64_t most = FIRST_BYTES;
static _Atomic size_t promised;

static bool is_counted(void)
{
    return atomic_load_explicit(&most, memory_order_relaxed) < ALLOWANCE_UNLIMITED;
}

void allowance_use(size_t bytes)
{
    if (bytes > 0 && is_counted())
        atomic_fetch_sub_explicit(&allowance_left, (int64_t)bytes, memory_order_relaxed);
}

void allowance_promise(size_t bytes)
{
    if (bytes >= PROMISE_BYTES_MIN && is_counted())
        atomic_fetch_add_explicit(&promised, bytes, memory_order_relaxed);
    allowance_use(bytes);
}

size_t allowance_take_promised(void)
{
    return atomic_exchange_explicit(&promised, 0, memory_order_relaxed);
}

void allowance_return(size_t bytes)
{
    if (bytes == 0 || !is_counted())
        return;
    int64_t left = atomic_load_explicit(&allowance_left, memory_order_relaxed), then;
    do {
        const int64_t limit = atomic_load_explicit(&most, memory_order_relaxed);
        then = left + (int64_t)bytes;
        if (then > limit)
            then = limit;
    } while (then > left && !atomic_compare_exchange_weak_explicit(&allowance_left, &left, then, memory_order_relaxed,
                                                                   memory_order_relaxed));
}

void allowance_note_low(void)
{
    atomic_store_explicit(&allowance_mark, 0, memory_order_relaxed);
}

void allowance_set(int64_t bytes)
{
    atomic_store_explicit(&most, bytes > RETURNED_MIN ? bytes : RETURNED_MIN, memory_order_relaxed);
    atomic_store_explicit(&allowance_left, bytes, memory_order_relaxed);
    atomic_store_explicit(&allowance_mark, bytes > 0 ? bytes / 2 : 0, memory_order_relaxed);
}

void allowance_reset(void)
{
    allowance_set(FIRST_BYTES);
}
