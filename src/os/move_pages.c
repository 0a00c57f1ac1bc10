/* SPDX-License-Identifier: MIT */
#include <linux/mman.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "os/filter.h"
#include "os/hooks.h"
#include "os/os.h"
#include "os/syscall.h"

/* What older headers do not name. */
#ifndef MREMAP_DONTUNMAP
#define MREMAP_DONTUNMAP 4
#endif
#ifndef MADV_COLD
#define MADV_COLD 20
#endif

static void *move(void *address, size_t size)
{
    long result = sys_call_if(need_luxury, SYS_mremap, (long)address, (long)size, (long)size,
                              MREMAP_MAYMOVE | MREMAP_DONTUNMAP, 0, 0);
    return sys_failed(result) ? NULL : (void *)result;
}

/* Whether the system can, and knows afterwards that the old place is still mapped.  An emulator may do the one without
 * the other: then it refuses system calls that are to write there. */
static bool is_sound(void *old)
{
    void *new = move(old, os_page_bytes);
    bool is = new != NULL && os_find_resident(new, os_page_bytes, old);
    if (new != NULL)
        os_unmap(new, os_page_bytes);
    return is;
}

static bool can_move(void)
{
    static _Atomic(enum { not_tried, no, yes }) known;
    int answer = atomic_load_explicit(&known, memory_order_relaxed);
    void *page = answer == not_tried ? os_map(os_page_bytes) : NULL;
    if (page != NULL) {
        atomic_store_explicit(&known, answer = is_sound(page) ? yes : no, memory_order_relaxed);
        os_unmap(page, os_page_bytes);
    }
    return answer == yes;
}

/* Of locked memory the system refuses to take the age.  To move a part of it would unlock the rest. */
static bool is_locked(char *page)
{
    return sys_failed(sys_call_if(need_luxury, SYS_madvise, (long)page, (long)os_page_bytes, MADV_COLD, 0, 0, 0));
}

void *os_move_pages(void *address, size_t size)
{
    const bool may_move = !os_is_hooked() && can_move() && !is_locked((char *)address + size - os_page_bytes);
    return may_move ? move(address, size) : NULL;
}
