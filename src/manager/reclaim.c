/* SPDX-License-Identifier: MIT
 *
 * reclaim: purges on a clock, with no allocator call needed.  A pass marks what it sees; what has not
 * changed by the next pass is purged (heap/purge.c): pages wholly free inside superblocks still in use, free spans,
 * cached mappings.  A program that frees and regrows within a period pays no fault twice; one that goes to sleep has
 * its memory purged within two periods.  When a pass finds nothing new and nothing to purge, the clock stops
 * until the program's slow paths are heard of again.
 *
 * Superblocks less than a quarter free are left out while the program works.  Before the clock stops those of large
 * blocks, whose free blocks are whole pages, are purged as well: a manager that sleeps is not woken when memory
 * becomes short, so it keeps nothing that would be purged then.
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
