/* SPDX-License-Identifier: MIT
 *
 * What libsutler_cids.so has beyond the library: see rcs/test_cids.h, and tests/support/cids.h for programs.
 */
#include "rcs/test_cids.h"

#include "base/tally.h"
#include "heap/heap.h"

EXPORT void sutler_test_bind_cid(unsigned cid);
EXPORT void sutler_test_move_to_cid(unsigned cid);
EXPORT struct tally sutler_test_tally(void);

/* The caller is another thread from here on, one that has always run on this cid. */
void sutler_test_bind_cid(unsigned cid)
{
    heap_forget_last();
    test_cids_bind(cid);
}

/* The caller was moved there. */
void sutler_test_move_to_cid(unsigned cid)
{
    test_cids_bind(cid);
}

struct tally sutler_test_tally(void)
{
    return tally;
}
