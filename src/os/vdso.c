/* SPDX-License-Identifier: MIT
 *
 * The time and the current cpu, from the kernel's vDSO (vdso(7)) found by ourselves.  libc's functions of these names
 * may be interposed (libfaketime does), by code that expects a thread of libc's and a program that wants to know.
 * Where the vDSO has no such function the system call is made.
 */
#include <elf.h>
#include <link.h>
#include <sys/auxv.h>
#include <time.h>

#include "base/compiler.h"
#include "os/filter.h"
#include "os/os.h"
#include "os/symbols.h"
#include "os/vdso.h"
#include "os/syscall.h"

#if defined(__x86_64__)
#define CLOCK_GETTIME "__vdso_clock_gettime"
#define GETCPU "__vdso_getcpu"
#else
#define CLOCK_GETTIME "__kernel_clock_gettime"
#define GETCPU "" /* none: libc's rseq area has it */
#endif

static int (*vdso_clock_gettime)(clockid_t, struct timespec *);
static int (*vdso_getcpu)(unsigned *, unsigned *, void *);

/* glibc 2.35 and later keep the current cpu of every thread of theirs here. */
extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned int __rseq_size __attribute__((weak));
#define RSEQ_CPU_ID 4

static bool read_image(uintptr_t start, struct symbols *image)
{
    const ElfW(Ehdr) *header = (const ElfW(Ehdr) *)start;
    const ElfW(Phdr) *segment = (const ElfW(Phdr) *)(start + header->e_phoff);
    const ElfW(Dyn) *entry = NULL;
    uintptr_t base = 0;
    bool loaded = false;
    for (unsigned i = 0; i < header->e_phnum; i++) {
        if (segment[i].p_type == PT_DYNAMIC)
            entry = (const ElfW(Dyn) *)(start + segment[i].p_offset);
        if (segment[i].p_type == PT_LOAD && !loaded) {
            base = start + segment[i].p_offset - segment[i].p_vaddr;
            loaded = true;
        }
    }
    return entry != NULL && symbols_read(entry, base, image);
}

static void *find(const struct symbols *image, const char *name)
{
    const ElfW(Sym) *symbol = symbols_definition(image, name);
    return symbol != NULL ? (void *)(image->base + symbol->st_value) : NULL;
}

void os_vdso_init(void)
{
    struct symbols image;
    uintptr_t start = getauxval(AT_SYSINFO_EHDR);
    if (start == 0 || !read_image(start, &image))
        return;
    vdso_clock_gettime = (int (*)(clockid_t, struct timespec *))find(&image, CLOCK_GETTIME);
    vdso_getcpu = (int (*)(unsigned *, unsigned *, void *))find(&image, GETCPU);
}

uint64_t os_now_ns(void)
{
    struct timespec now = {0};
    if (vdso_clock_gettime == NULL || vdso_clock_gettime(CLOCK_MONOTONIC, &now) != 0)
        sys_call_if(need_plain, SYS_clock_gettime, CLOCK_MONOTONIC, (long)&now, 0, 0, 0, 0);
    return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}

unsigned os_current_cpu(void)
{
    unsigned cpu = 0;
    if (&__rseq_offset != NULL && &__rseq_size != NULL && __rseq_size != 0) {
        int32_t id = *(volatile int32_t *)((char *)own_thread_pointer() + __rseq_offset + RSEQ_CPU_ID);
        if (likely(id >= 0))
            return (unsigned)id;
    }
    if (vdso_getcpu == NULL || vdso_getcpu(&cpu, NULL, NULL) != 0)
        sys_call_if(need_plain, SYS_getcpu, (long)&cpu, 0, 0, 0, 0, 0);
    return cpu;
}
