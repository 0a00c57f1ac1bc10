/* SPDX-License-Identifier: MIT */
#include "os/hooks.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "os/lock.h"
#include "os/os.h"
#include "os/symbols.h"

extern __typeof__(dlsym) dlsym __attribute__((weak));
#ifdef __GLIBC__
extern __typeof__(dladdr1) dladdr1 __attribute__((weak));
#endif

/* Enough for a jump to anywhere behind an instruction that marks where jumps may lead. */
struct code {
    uint64_t word[2];
};

static struct {
    int (*munmap)(void *address, size_t size);
    int (*madvise)(void *address, size_t size, int advice);
    struct code munmap_then, madvise_then;
} libc;
static _Atomic bool is_watched;

static struct code read_code(uintptr_t at)
{
    struct code code;
    memcpy(&code, (const void *)at, sizeof code);
    return code;
}

/* Whether somebody has replaced it already, in a constructor before ours: libc's own begins with the system call. */
static bool is_jump(struct code code)
{
#if defined(__x86_64__)
    const unsigned char mark[] = {0xf3, 0x0f, 0x1e, 0xfa}, *is = (const unsigned char *)&code;
    is += memcmp(is, mark, sizeof mark) == 0 ? sizeof mark : 0;
    const bool is_near = is[0] == 0xe9, is_far = is[0] == 0xff && is[1] == 0x25,
               is_by_register = (is[0] == 0x49 && is[1] == 0xbb) || (is[0] == 0x48 && is[1] == 0xb8);
    return is_near || is_far || is_by_register;
#elif defined(__aarch64__)
    uint32_t is[4];
    memcpy(is, &code, sizeof is);
    for (size_t i = 0; i < 4; i++)
        if ((is[i] & 0xfffffc1f) == 0xd61f0000) /* br */
            return true;
    return (is[0] & 0xfc000000) == 0x14000000; /* b */
#endif
}

/* What is nobody's code differs from whatever will be there. */
static struct code code_before(uintptr_t at)
{
    const struct code code = read_code(at);
    return is_jump(code) ? (struct code){0} : code;
}

/* Libraries between ours and libc may have functions of these names that call libc's, so libc's own table of names is
 * asked.  (For a handle of it dlopen would run what libc has to run at its start, too early.)  False where libc is not
 * found: it is another than glibc, or the library was opened late. */
static bool find_libc(struct symbols *s)
{
#ifdef __GLIBC__
    const struct link_map *library;
    Dl_info info;
    if (dladdr1 == NULL || dladdr1(&libc, &info, (void **)&library, RTLD_DL_LINKMAP) == 0)
        return false;
    for (; library != NULL; library = library->l_next)
        if (symbols_of(library, s) && symbols_definition(s, "gnu_get_libc_version") != NULL)
            return true;
#endif
    (void)s;
    return false;
}

static void *find(const struct symbols *of_libc, const char *name)
{
    const ElfW(Sym) *symbol = of_libc != NULL ? symbols_definition(of_libc, name) : NULL;
    return symbol != NULL ? (void *)(of_libc->base + symbol->st_value) : dlsym(RTLD_NEXT, name);
}

void os_hooks_init(void)
{
    if (dlsym == NULL)
        return;
    struct symbols s;
    const struct symbols *of_libc = find_libc(&s) ? &s : NULL;
    libc.munmap = (int (*)(void *, size_t))find(of_libc, "munmap");
    libc.madvise = (int (*)(void *, size_t, int))find(of_libc, "madvise");
    if (libc.munmap == NULL || libc.madvise == NULL)
        return;
    libc.munmap_then = code_before((uintptr_t)libc.munmap);
    libc.madvise_then = code_before((uintptr_t)libc.madvise);
    atomic_store(&is_watched, true);
}

/* False if it is a debugger's or tracer's breakpoint, of one byte, which hides nothing from anybody. */
static COLD bool is_replaced(struct code now, const struct code *then)
{
    const unsigned char breakpoint = 0xcc, *was = (const unsigned char *)then, *is = (const unsigned char *)&now;
    for (size_t i = 0; i < sizeof now; i++)
        if (is[i] != was[i] && is[i] != breakpoint)
            return true;
    return false;
}

static bool begins_otherwise(uintptr_t at, const struct code *then)
{
    const struct code now = read_code(at);
    const bool differs = now.word[0] != then->word[0] || now.word[1] != then->word[1];
    return unlikely(differs) && is_replaced(now, then);
}

bool os_is_hooked(void)
{
    return atomic_load_explicit(&is_watched, memory_order_acquire) &&
           (begins_otherwise((uintptr_t)libc.munmap, &libc.munmap_then) ||
            begins_otherwise((uintptr_t)libc.madvise, &libc.madvise_then));
}

bool os_may_give_back(void)
{
    return !background_thread_is_caller() || !os_is_hooked();
}

static long result_of(int result, int errno_before)
{
    const long answer = result == 0 ? 0 : -errno;
    errno = errno_before;
    return answer;
}

long os_hooked_munmap(void *address, size_t size)
{
    const int before = errno;
    return result_of(libc.munmap(address, size), before);
}

long os_hooked_madvise(void *address, size_t size, int advice)
{
    const int before = errno;
    return result_of(libc.madvise(address, size, advice), before);
}
