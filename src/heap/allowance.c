/* SPDX-License-Identifier: MIT */
#include "heap/allowance.h"

/* At first, until somebody has looked. */
#define FIRST_BYTES (64ll << 20)

_Atomic int64_t allowance_left = FIRST_BYTES;

static bool is_limited(void)
{
    return atomic_load_explicit(&allowance_left, memory_order_relaxed) < ALLOWANCE_UNLIMITED / 2;
}

void allowance_use(size_t bytes)
{
    if (bytes > 0 && is_limited())
        atomic_fetch_sub_explicit(&allowance_left, (int64_t)bytes, memory_order_relaxed);
}

void allowance_return(size_t bytes)
{
    if (bytes > 0 && is_limited())
        atomic_fetch_add_explicit(&allowance_left, (int64_t)bytes, memory_order_relaxed);
}

void allowance_set(int64_t bytes)
{
    atomic_store_explicit(&allowance_left, bytes, memory_order_relaxed);
}
