/* SPDX-License-Identifier: MIT
 *
 * unmap: unmaps large freed mappings, which takes milliseconds, in place of the thread that frees them.  Until then a
 * malloc of about the same size may take them again.  MAPPING_DEFERRED_BYTES is the bound; a program that runs short of
 * memory unmaps them itself.
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
