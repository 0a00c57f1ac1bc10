/* SPDX-License-Identifier: MIT
 *
 * report: live statistics in a page other processes can map, so that reading them interrupts nothing and needs no
 * answer.  The page is a memfd in the manager's own file descriptor table: the program does not see it, and a reader
 * finds it as /proc/PID/task/TID/fd/N of the thread named sutler-manager (`sutler stats PID` does).  struct
 * sutler_page is its layout.
 *
 * It is written once a second while the heap changes and once more when it has stopped changing.
 */
#include "manager/report.h"

#include <string.h>

#include "manager/jobs.h"
#include "manager/snapshot.h"
#include "os/os.h"

static struct sutler_page *page; /* NULL: none could be had */

static const char field_names[] =
#define STAT(field, is_bytes, doc) #field " "
#include "stats/stats.def"
#undef STAT
    ;

void report_open(void)
{
    _Static_assert(sizeof *page + sizeof field_names <= OS_PAGE_BYTES_MIN, "one page");
    page = os_shared_page("sutler-stats", os_page_bytes);
    if (page == NULL)
        return;
    page->size = sizeof *page;
    memcpy(page + 1, field_names, sizeof field_names);
    memcpy(page->magic, SUTLER_PAGE_MAGIC, sizeof page->magic);
    report_run(0);
}

void report_close(void)
{
    if (page != NULL)
        os_unmap(page, os_page_bytes);
    page = NULL;
}

void report_forget(void)
{
    page = NULL; /* a forked child has not got it */
}

bool report_run(uint64_t budget_ns)
{
    (void)budget_ns; /* one walk over the descriptors */
    if (page == NULL)
        return false;
    struct sutler_stats stats;
    snapshot_take(&stats);
    /* What the manager itself changes does not count: else it would keep itself awake. */
    struct sutler_stats last = page->stats, now = stats;
    last.manager_cpu_us = now.manager_cpu_us = last.lock_waits = now.lock_waits = 0;
    last.wait_us = now.wait_us = last.file_opens = now.file_opens = 0;
    bool changed = memcmp(&last, &now, sizeof now) != 0;
    /* Odd while it is being written. */
    __atomic_store_n(&page->sequence, page->sequence + 1, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_RELEASE);
    page->stats = stats;
    page->written_ns = os_now_ns();
    __atomic_store_n(&page->sequence, page->sequence + 1, __ATOMIC_RELEASE);
    return changed;
}
