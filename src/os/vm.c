/* SPDX-License-Identifier: MIT */
#include <linux/memfd.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/uio.h>

#include "base/bits.h"
#include "os/filter.h"
#include "os/line.h"
#include "os/os.h"
#include "os/syscall.h"

/* The kernel's numbers that older headers do not name: the same on every machine. */
enum {
    map_fixed_noreplace = 0x100000,
    advice_free = 8,
    advice_wipe_on_fork = 18,
    advice_cold = 20,
    advice_guard_install = 102,
    advice_guard_remove = 103,
    add_seals = 1033,
    seal_seal = 1,
    seal_shrink = 2,
    seal_grow = 4,
    seal_future_write = 16,
};

/* At the end of the stack lie the name of the file the program was started from, and a word of zeros.  Without
 * randomization the stack ends where the address space does, or a page below on some machines; with it, up to gigabytes
 * below.  To look costs no system call. */
bool os_is_randomized(void)
{
    const char *at = (const char *)getauxval(AT_EXECFN);
    if (at == NULL)
        return true;
    while (*at++ != '\0')
        continue;
    uintptr_t end = (uintptr_t)at + sizeof(void *), space = (uintptr_t)1 << (top_bit(end - 1) + 1);
    return end != space && end != space - os_page_bytes;
}

static long map(void *hint, size_t size, int flags)
{
    return sys_call(SYS_mmap, (long)hint, (long)size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1,
                    0);
}

int os_map_at(void *address, size_t size)
{
    long result = map(address, size, map_fixed_noreplace);
    if (result == (long)address)
        return 0;
    if (!sys_failed(result)) { /* a kernel before 4.17 took the address for a mere hint */
        os_unmap((void *)result, size);
        return EEXIST;
    }
    return result == -EEXIST ? EEXIST : ENOMEM;
}

void *os_map(size_t size)
{
    long result = map(NULL, size, 0);
    return sys_failed(result) ? NULL : (void *)result;
}

bool os_set_writable(void *address, size_t size, bool writable)
{
    long protection = PROT_READ | (writable ? PROT_WRITE : 0);
    return !sys_failed(sys_call(SYS_mprotect, (long)address, (long)size, protection, 0, 0, 0));
}

/* What is asked for a range; false where the system refuses. */
#define ADVICE(name, parameters, advice)                                                                               \
    bool name parameters                                                                                               \
    {                                                                                                                  \
        return !sys_failed(sys_call(SYS_madvise, (long)address, (long)size, advice, 0, 0, 0));                         \
    }

ADVICE(os_purge, (void *address, size_t size), MADV_DONTNEED)
ADVICE(os_give_up, (void *address, size_t size), advice_free)
ADVICE(os_advise_huge, (void *address, size_t size), MADV_HUGEPAGE)
ADVICE(os_advise_small, (void *address, size_t size), MADV_NOHUGEPAGE)
ADVICE(os_wipe_on_fork, (void *address, size_t size), advice_wipe_on_fork)
ADVICE(os_keep_from_children, (void *address, size_t size, bool keep), keep ? MADV_DONTFORK : MADV_DOFORK)
ADVICE(os_guard, (void *address, size_t size, bool guarded), guarded ? advice_guard_install : advice_guard_remove)

void os_split_huge(void *page)
{
    sys_call(SYS_madvise, (long)page, (long)os_page_bytes, advice_cold, 0, 0, 0);
}

void os_unmap(void *address, size_t size)
{
    /* Refused where it would split a mapping and the process has as many as it may have: then at least the pages go. */
    if (sys_failed(sys_call(SYS_munmap, (long)address, (long)size, 0, 0, 0, 0)))
        os_purge(address, size);
}

void *os_remap(void *address, size_t old_size, size_t new_size, bool may_move)
{
    long result =
        sys_call(SYS_mremap, (long)address, (long)old_size, (long)new_size, may_move ? MREMAP_MAYMOVE : 0, 0, 0);
    return sys_failed(result) ? NULL : (void *)result;
}

bool os_purge_ranges(const struct os_range *ranges, size_t count)
{
    /* PIDFD_SELF: Linux 6.14; elsewhere the call fails and each range is purged by itself. */
    const long pidfd_self = -10000, process_madvise = 440; /* SYS_process_madvise: Linux 5.10 */
    _Static_assert(sizeof(struct os_range) == sizeof(struct iovec), "an iovec by another name");
    size_t total = 0;
    for (size_t i = 0; i < count; i++)
        total += ranges[i].size;
    long done = sys_call_if(need_luxury, process_madvise, pidfd_self, (long)ranges, (long)count, MADV_DONTNEED, 0, 0);
    if (done == (long)total)
        return true;
    bool all = true;
    for (size_t i = 0; i < count; i++)
        all &= os_purge(ranges[i].address, ranges[i].size);
    return all;
}

void os_touch(void *page)
{
    __atomic_fetch_or((char *)page, 0, __ATOMIC_RELAXED);
}

bool os_find_resident(void *address, size_t size, unsigned char *there)
{
    if (sys_failed(sys_call_if(need_luxury, SYS_mincore, (long)address, (long)size, (long)there, 0, 0, 0)))
        return false;
    for (size_t i = 0; i < size / os_page_bytes; i++)
        there[i] &= 1; /* the other bits are the kernel's to use */
    return true;
}

/* A process that may open the file must not cut it short, which would end everyone who has it mapped by SIGBUS, and
 * must not write to it.  The seal against writing is newer (Linux 5.1), and spares the mapping that is there already:
 * ours. */
static void seal(long fd)
{
    const long size_stays = seal_shrink | seal_grow | seal_seal;
    if (sys_failed(sys_call(SYS_fcntl, fd, add_seals, size_stays | seal_future_write, 0, 0, 0)))
        sys_call(SYS_fcntl, fd, add_seals, size_stays, 0, 0, 0);
}

void *os_shared_page(const char *name, size_t size)
{
    long fd = sys_call(SYS_memfd_create, (long)name, MFD_CLOEXEC | MFD_ALLOW_SEALING, 0, 0, 0, 0);
    if (sys_failed(fd))
        return NULL;
    size = align_up(size, os_page_bytes);
    long at = sys_call(SYS_ftruncate, fd, (long)size, 0, 0, 0, 0);
    if (!sys_failed(at))
        at = sys_call(SYS_mmap, 0, (long)size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (sys_failed(at)) {
        sys_call(SYS_close, fd, 0, 0, 0, 0, 0);
        return NULL;
    }
    seal(fd);
    os_keep_from_children((void *)at, size, true);
    return (void *)at;
}

size_t os_resident_peak_bytes(void)
{
    struct rusage usage;
    if (sys_failed(sys_call_if(need_luxury, SYS_getrusage, RUSAGE_SELF, (long)&usage, 0, 0, 0, 0)))
        return 0;
    return (size_t)usage.ru_maxrss << 10;
}

size_t os_resident_bytes(void)
{
    char text[128];
    os_read_file("/proc/self/statm", text, sizeof text); /* "size resident shared ..." in pages */
    size_t pages = text_number(text_after_words(text, 1));
    return pages == SIZE_MAX ? 0 : pages * os_page_bytes;
}
