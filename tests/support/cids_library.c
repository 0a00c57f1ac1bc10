/* SPDX-License-Identifier: MIT
 *
 * Synthetic cids: what libsutler_cids.so has beyond the library (support/cids.h is for programs), to show on two cpus
 * what it does on a thousand.  Everything is as in rcs mode, sections and all, but the cid is read from a thread-local
 * variable that the program sets.  The linker's --wrap puts the two functions here in the way of the library's.
 *
 * The program guarantees what the kernel does elsewhere: of all threads bound to a cid at most one is in the library at
 * a time, and a cid is handed over by something that orders memory (a lock, a join).  A thread binds itself before its
 * first malloc or free; the first thread begins on cid 0.
 */
#include "base/tally.h"
#include "heap/heap.h"
#include "rcs/hot.h"
#include "rcs/rcs.h"

struct tally tally;

THREAD_LOCAL uint32_t bound = SLOT_MAX; /* nobody's: CHECK in heap_bind_slow ends a thread that did not bind itself */

unsigned __wrap_os_cpu_limit(void);
void __real_rcs_start(enum sync_mode wanted, struct heap *empty);
void __wrap_rcs_start(enum sync_mode wanted, struct heap *empty);
EXPORT void sutler_test_bind_cid(unsigned cid);
EXPORT void sutler_test_move_to_cid(unsigned cid);
EXPORT struct tally sutler_test_tally(void);

/* Any number below SLOT_MAX will do as a cid. */
unsigned __wrap_os_cpu_limit(void)
{
    return SLOT_MAX;
}

void __wrap_rcs_start(enum sync_mode wanted, struct heap *empty)
{
    __real_rcs_start(wanted, empty);
    bound = 0;
    if (sync_mode == sync_rcs)
        hot.cid = (char *)&bound - (char *)own_thread_pointer();
}

/* The caller was moved there. */
void sutler_test_move_to_cid(unsigned cid)
{
    CHECK(cid < SLOT_MAX);
    __atomic_store_n(&bound, cid, __ATOMIC_RELEASE);
}

/* The caller is another thread from here on, one that has always run on this cid. */
void sutler_test_bind_cid(unsigned cid)
{
    heap_forget_last();
    sutler_test_move_to_cid(cid);
}

struct tally sutler_test_tally(void)
{
    return tally;
}
