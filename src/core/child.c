/* SPDX-License-Identifier: MIT */
#include "core/child.h"

#include "core/core.h"
#include "heap/filling.h"
#include "heap/inherited.h"
#include "heap/large.h"
#include "heap/pass.h"
#include "manager/manager.h"
#include "os/os.h"

/* From child_watch on the mark lies on a page that reads as zero in a child, where the system can do that. */
static _Atomic uint32_t unwatched = child_known;
_Atomic uint32_t *child_mark = &unwatched;
static _Atomic uint8_t recoveries; /* made by this process and its parents */

void child_begin_anew(void)
{
    fast_paths_forget();
    filling_recover();
    quarantine_recover();
    manager_forget();
    if (inherited_begin())
        fast_paths_shut_malloc();
    pass_begin();
    mapping_unmap_deferred(SIZE_MAX); /* copies of what the parent's manager was to unmap */
    pass_end();
}

/* The child may have started threads by now: one of them recovers, the others wait. */
COLD void child_recover(void)
{
    uint32_t seen = child_new;
    if (atomic_compare_exchange_strong(child_mark, &seen, child_recovering)) {
        heap_recover();
        child_begin_anew();
        atomic_fetch_add(&recoveries, 1);
        atomic_store(child_mark, child_known);
        return;
    }
    while (atomic_load(child_mark) == child_recovering)
        os_yield();
}

bool child_watch(void)
{
    _Atomic uint32_t *mark = os_map(os_page_bytes);
    if (mark == NULL)
        return false;
    *mark = child_known;
    os_wipe_on_fork((void *)mark, os_page_bytes); /* where the system cannot, only our handlers tell */
    child_mark = mark;
    return true;
}

uint8_t child_recoveries(void)
{
    return atomic_load(&recoveries);
}
