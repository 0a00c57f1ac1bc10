/* SPDX-License-Identifier: MIT */
#include "manager/allow.h"

#include "base/bits.h"
#include "heap/allowance.h"
#include "heap/large.h"
#include "heap/shortage.h"

/* How much is left says nothing of who else takes it: so a part of it is allowed, within bounds. */
#define ALLOWED_PART 4u
#define ALLOWED_MIN  (1ul << 20)
#define ALLOWED_MAX  (1ul << 30)
#define UNREAD_BYTES (16ll << 20)
/* Of what is left some is not the program's to take: page tables, stacks, and others in the group.  It grows with the
 * heap. */
#define UNCOUNTED_PART 8u
#define UNCOUNTED_MIN  (2ul << 20)
#define UNCOUNTED_MAX  (24ul << 20)
/* What large blocks were promised is taken to be touched by then, or never. */
#define OWED_NS  200000000ull
#define OWED_MAX (32ul << 20)

/* What large blocks were promised lately is not seen yet, for the most part.  Some is never touched: what is owed for
 * it is less the longer ago that was. */
static size_t owed_bytes(uint64_t now_ns)
{
    static size_t owed;
    static uint64_t owed_ns;
    const uint64_t past_ns = min_size(now_ns - owed_ns, OWED_NS);
    owed = min_size((size_t)((uint64_t)owed * (OWED_NS - past_ns) / OWED_NS) + allowance_take_promised(), OWED_MAX);
    owed_ns = now_ns;
    return owed;
}

void allow_part_of(size_t left, bool is_looked_at, uint64_t now_ns)
{
    const size_t uncounted = max_size(UNCOUNTED_MIN, min_size(heap_in_use_bytes() / UNCOUNTED_PART, UNCOUNTED_MAX));
    const int64_t room = (int64_t)min_size(left, INT64_MAX / 2) - (int64_t)(uncounted + owed_bytes(now_ns));
    if (room > 0)
        shortage_is_over();
    if (is_looked_at)
        allowance_set(ALLOWANCE_UNLIMITED);
    else if (room <= 0 && !shortage_is_granted())
        allowance_set(room);
    else if (room > 0)
        allowance_set((int64_t)max_size(ALLOWED_MIN, min_size((size_t)room / ALLOWED_PART, ALLOWED_MAX)));
}

void allow_until_read(void)
{
    allowance_set(UNREAD_BYTES);
}
