/* SPDX-License-Identifier: MIT */
#include "rcs/test_cids.h"

#include "base/tally.h"
#include "rcs/rcs.h"

struct tally tally;

THREAD_LOCAL uint32_t bound = SLOT_MAX; /* nobody's: CHECK in heap_bind_slow ends a thread that did not bind itself */

ptrdiff_t test_cids_start(void)
{
    bound = 0;
    return (char *)&bound - (char *)__builtin_thread_pointer();
}

void test_cids_bind(unsigned cid)
{
    CHECK(cid < SLOT_MAX);
    __atomic_store_n(&bound, cid, __ATOMIC_RELEASE);
}
