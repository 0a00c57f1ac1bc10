/* SPDX-License-Identifier: MIT
 *
 * The allocator of the 2013 report (Bloemendal & Scott): the heap is chosen by a hash of the thread, and there are more
 * heaps than can be in use at a time.  Only in lock mode: sections need a heap that no other thread runs on.
 */
#include <pthread.h>

#include "policy.h"

#include "os/os.h"
#include "rcs/rcs.h"

unsigned __real_sync_slot(void);
unsigned __wrap_sync_slot(void);

/* Hoard's number: more than can run at a time, fewer than there may be threads. */
static unsigned heap_count(void)
{
    static _Atomic unsigned known;
    const unsigned unknown = 64;
    if (known == 0) {
        unsigned count = 2 * os_cpus_allowed(0);
        known = count == 0 ? unknown : count > slot_count ? slot_count : count;
    }
    return known;
}

unsigned __wrap_sync_slot(void)
{
    if (sync_mode == sync_rcs || policy_chosen() != policy_thread)
        return __real_sync_slot();
    uint64_t hash = ((uintptr_t)pthread_self() >> 12) * 0x9e3779b97f4a7c15ull;
    sync_slot_last = (uint32_t)(hash >> 32) % heap_count();
    return sync_slot_last;
}
