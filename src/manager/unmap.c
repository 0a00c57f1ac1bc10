/* SPDX-License-Identifier: MIT
 *
 * unmap: unmaps large freed mappings, which takes milliseconds, in place of the thread that frees them.  Until then a
 * malloc of about the same size may take them again.  MAPPING_DEFERRED_BYTES is the bound; a program that runs short of
 * memory unmaps them itself.
 */
#include "heap/large.h"
#include "heap/pass.h"
#include "manager/jobs.h"
#include "os/os.h"

/* A sixteenth of that for memory in huge pages. */
#define NS_PER_UNMAPPED_PAGE 200u

bool unmap_run(uint64_t budget_ns)
{
    const size_t most = budget_ns == UINT64_MAX ? SIZE_MAX : budget_ns / NS_PER_UNMAPPED_PAGE * OS_PAGE_BYTES_MIN;
    pass_begin();
    size_t done = mapping_unmap_deferred(most);
    pass_end();
    return done >= most;
}
