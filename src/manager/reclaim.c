/* SPDX-License-Identifier: MIT
 *
 * reclaim: purges on a clock, without any call of the allocator.  A pass marks what it sees, and purges what has not
 * changed since the pass before (heap/purge.c): wholly free pages inside superblocks in use, free spans, cached
 * mappings.  A program that frees and regrows within a period pays no fault twice; one that goes to sleep has its
 * memory purged within two periods.  When a pass finds nothing new and nothing to purge, the clock stops until slow
 * paths wake it.
 *
 * While the program works, superblocks that are less than a quarter free are left out.  Before the clock stops, those
 * of large blocks, whose free blocks are whole pages, are purged as well: nothing wakes a sleeping manager when memory
 * becomes short, so it leaves nothing that it would purge then.
 */
#include "heap/purge.h"
#include "manager/jobs.h"

bool reclaim_run(uint64_t budget_ns)
{
    (void)budget_ns; /* a pass is whole; it lets others in between its batches */
    bool changed;
    size_t bytes = heap_purge(purge_decay, &changed);
    if (bytes == 0 && !changed)
        bytes = heap_purge(purge_idle, &changed);
    return bytes > 0 || changed;
}
