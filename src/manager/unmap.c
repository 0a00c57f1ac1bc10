/* SPDX-License-Identifier: MIT
 *
 * unmap: gives large freed mappings back to the system, which takes milliseconds, so that free of them does not.  Until
 * then a malloc of about the same size may have them again.  Bounded by MAPPING_DEFERRED_BYTES; a program short of
 * memory does it itself.
 */
#include "heap/large.h"
#include "heap/pass.h"
#include "manager/jobs.h"

bool unmap_run(uint64_t budget_ns)
{
    (void)budget_ns;
    pass_begin();
    mapping_unmap_deferred();
    pass_end();
    return false;
}
