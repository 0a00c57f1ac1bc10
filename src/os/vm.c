/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <linux/memfd.h>
#include <linux/mman.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/uio.h>

#include "base/bits.h"
#include "os/filter.h"
#include "os/hooks.h"
#include "os/line.h"
#include "os/lock.h"
#include "os/os.h"
#include "os/syscall.h"

/* What older headers do not name. */
#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif
#ifndef F_ADD_SEALS
#define F_ADD_SEALS 1033
#define F_SEAL_SEAL 1
#define F_SEAL_SHRINK 2
#define F_SEAL_GROW 4
#endif
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 16
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif
#ifndef MADV_FREE
#define MADV_FREE 8
#endif
#ifndef MADV_COLD
#define MADV_COLD 20
#endif
#ifndef MADV_WIPEONFORK
#define MADV_WIPEONFORK 18
#endif
#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#define MADV_GUARD_REMOVE  103
#endif
#ifndef SYS_process_madvise
#define SYS_process_madvise 440
#endif

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
    long result = map(address, size, MAP_FIXED_NOREPLACE);
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

ADVICE(os_wipe, (void *address, size_t size), MADV_DONTNEED)
ADVICE(os_advise_huge, (void *address, size_t size), MADV_HUGEPAGE)
ADVICE(os_advise_small, (void *address, size_t size), MADV_NOHUGEPAGE)
ADVICE(os_populate, (void *address, size_t size), MADV_POPULATE_WRITE)
ADVICE(os_wipe_on_fork, (void *address, size_t size), MADV_WIPEONFORK)
ADVICE(os_keep_from_children, (void *address, size_t size, bool keep), keep ? MADV_DONTFORK : MADV_DOFORK)

bool os_purge(void *address, size_t size)
{
    if (likely(!os_is_hooked()))
        return os_wipe(address, size);
    return !background_thread_is_caller() && os_hooked_madvise(address, size, MADV_DONTNEED) == 0;
}

/* Not all hooks know that advice. */
bool os_give_up(void *address, size_t size)
{
    return !os_is_hooked() && !sys_failed(sys_call(SYS_madvise, (long)address, (long)size, MADV_FREE, 0, 0, 0));
}

/* To guard takes the pages, too, and no hook knows that advice. */
bool os_guard(void *address, size_t size, bool guarded)
{
    if (guarded && unlikely(os_is_hooked()) && !os_purge(address, size))
        return false;
    return !sys_failed(sys_call(SYS_madvise, (long)address, (long)size,
                                guarded ? MADV_GUARD_INSTALL : MADV_GUARD_REMOVE, 0, 0, 0));
}

int os_collapse(void *address, size_t size)
{
    return (int)-sys_call(SYS_madvise, (long)address, (long)size, MADV_COLLAPSE, 0, 0, 0);
}

/* What the system does where nobody asked for huge pages, nor against them. */
enum by_default { not_read, not_known, small_pages, all_huge_pages };

static enum by_default pages_by_default(void)
{
    static _Atomic(enum by_default) known;
    enum by_default answer = atomic_load_explicit(&known, memory_order_relaxed);
    char text[64];
    if (answer != not_read)
        return answer;
    os_read_file("/sys/kernel/mm/transparent_hugepage/enabled", text, sizeof text);
    answer = strstr(text, "[madvise]") != NULL ? small_pages
             : strstr(text, "[always]") != NULL ? all_huge_pages
                                                : not_known;
    atomic_store_explicit(&known, answer, memory_order_relaxed);
    return answer;
}

bool os_makes_all_pages_huge(void)
{
    return pages_by_default() == all_huge_pages;
}

bool os_may_collapse(void)
{
    static enum { not_asked, no, yes } answer;
    if (answer == not_asked)
        answer = pages_by_default() == small_pages && os_collapse(NULL, 0) == 0 ? yes : no;
    return answer == yes;
}

/* From the pagemap, a word a page. */
static bool are_own(const uint64_t *word, size_t count)
{
    const uint64_t present = 1ull << 63, exclusive = 1ull << 56;
    for (size_t i = 0; i < count; i++)
        if ((word[i] & present) == 0 || (word[i] & exclusive) == 0)
            return false;
    return true;
}

/* That of the process would be empty once its first thread has ended. */
long os_pages_open(void)
{
    return os_open("/proc/thread-self/pagemap");
}

long os_pagemap_open(void)
{
    if (!need_begins(need_luxury))
        return -EPERM;
    long fd = os_pages_open();
    need_ends();
    return fd;
}

void os_pagemap_close(long pagemap)
{
    sys_call_if(need_luxury, SYS_close, pagemap, 0, 0, 0, 0, 0);
}

bool os_owns_pages(long pagemap, void *address, size_t size)
{
    uint64_t word[64];
    size_t page = (uintptr_t)address / os_page_bytes, end = page + size / os_page_bytes;
    while (page < end) {
        size_t wanted = min_size(ARRAY_LEN(word), end - page) * sizeof word[0];
        long length = sys_call_if(need_luxury, SYS_pread64, pagemap, (long)word, (long)wanted,
                                  (long)(page * sizeof word[0]), 0, 0);
        size_t count = length > 0 ? (size_t)length / sizeof word[0] : 0;
        if (count == 0 || !are_own(word, count))
            return false;
        page += count;
    }
    return true;
}

void os_split_huge(void *page)
{
    sys_call(SYS_madvise, (long)page, (long)os_page_bytes, MADV_COLD, 0, 0, 0);
}

void os_unmap(void *address, size_t size)
{
    /* Refused where it would split a mapping and the process has as many as it may have: then at least the pages go. */
    if (sys_failed(sys_call(SYS_munmap, (long)address, (long)size, 0, 0, 0, 0)))
        os_wipe(address, size);
}

void os_give_back(void *address, size_t size)
{
    if (background_thread_is_caller() || likely(!os_is_hooked()))
        os_unmap(address, size);
    else if (os_hooked_munmap(address, size) != 0)
        os_purge(address, size);
}

void *os_remap(void *address, size_t old_size, size_t new_size, bool may_move)
{
    const int flags = may_move && !os_is_hooked() ? MREMAP_MAYMOVE : 0;
    const long result = sys_call(SYS_mremap, (long)address, (long)old_size, (long)new_size, flags, 0, 0);
    return sys_failed(result) ? NULL : (void *)result;
}

/* Asked to lengthen it where it is, the system says EFAULT of several, before it looks for room. */
bool os_is_one_mapping(void *address, size_t size)
{
    const long result = sys_call(SYS_mremap, (long)address, (long)size, (long)(size + os_page_bytes), 0, 0, 0);
    if (!sys_failed(result))
        os_unmap((char *)address + size, os_page_bytes);
    return result != -EFAULT;
}

bool os_purge_ranges(const struct os_range *ranges, size_t count)
{
    /* PIDFD_SELF: Linux 6.14; elsewhere the call fails and each range is purged by itself. */
    const long pidfd_self = -10000;
    _Static_assert(sizeof(struct os_range) == sizeof(struct iovec), "an iovec by another name");
    size_t total = 0;
    for (size_t i = 0; i < count; i++)
        total += ranges[i].size;
    const long done = unlikely(os_is_hooked()) ? -EPERM
                                               : sys_call_if(need_luxury, SYS_process_madvise, pidfd_self, (long)ranges,
                                                             (long)count, MADV_DONTNEED, 0, 0);
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

static bool ask_resident(void *address, size_t size, unsigned char *there)
{
    return !sys_failed(sys_call_if(need_luxury, SYS_mincore, (long)address, (long)size, (long)there, 0, 0, 0));
}

bool os_find_resident(void *address, size_t size, unsigned char *there)
{
    if (!ask_resident(address, size, there))
        return false;
    for (size_t i = 0; i < size / os_page_bytes; i++)
        there[i] &= 1; /* the other bits are the kernel's to use */
    return true;
}

bool os_is_resident(const void *address)
{
    unsigned char there;
    return ask_resident((void *)align_down((uintptr_t)address, os_page_bytes), os_page_bytes, &there) &&
           (there & 1) != 0;
}

bool os_peek(char *to, const char *const *from, size_t count)
{
    const struct iovec local = {to, count * OS_PEEK_BYTES};
    struct iovec remote[OS_PEEKS_MAX];
    for (size_t i = 0; i < count; i++)
        remote[i] = (struct iovec){(char *)from[i], OS_PEEK_BYTES};
    /* Not of the process's first thread, which may have ended and have no memory any more. */
    return sys_call_if(need_luxury, SYS_process_vm_readv, os_thread_id(), (long)&local, 1, (long)remote, (long)count,
                       0) == (long)local.iov_len;
}

/* A process that may open the file must not cut it short, which would end everyone who has it mapped by SIGBUS, and
 * must not write to it.  The seal against writing is newer (Linux 5.1), and spares the mapping that is there already:
 * ours. */
static void seal(long fd)
{
    const long size_stays = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
    if (sys_failed(sys_call(SYS_fcntl, fd, F_ADD_SEALS, size_stays | F_SEAL_FUTURE_WRITE, 0, 0, 0)))
        sys_call(SYS_fcntl, fd, F_ADD_SEALS, size_stays, 0, 0, 0);
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
