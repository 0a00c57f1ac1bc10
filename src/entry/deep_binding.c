/* SPDX-License-Identifier: MIT
 *
 * Libraries loaded with RTLD_DEEPBIND (PHP loads its extensions so) look a name up in the libraries they need before
 * the program's: they would find libc's free, and give it blocks of ours, and libc's setuid, which knows nothing of the
 * manager.  So would programs that look functions up in a library they opened, libc or one that needs it, as Python's
 * ctypes and other foreign function interfaces do: they free what libc's strdup took from our malloc.  So before the
 * first dlopen we patch libc's symbol table: under the names this library defines it leads to the definitions that the
 * rest of the program has.  All other names are bound as the flag says.
 * (docs/decisions/0011-deep-binding.md, 0041-names-looked-up-in-a-library.md)
 *
 * A name is left alone where another library stands between us and libc with a definition of its own: it may look for
 * the next one when it is called, and would find itself.  Without the flag so is a name that somebody before us
 * defines: it may be looking in libc for what is behind it.  With the flag such a name leads to that definition if it
 * is from a malloc, which is to get its blocks back, and to ours if it is not: wrappers of other calls open libc with
 * the flag to look behind themselves (libuid_wrapper does).
 *
 * Only in the shared library: a static program's libc has no symbols to look up.
 */
#include <dlfcn.h>
#include <gnu/lib-names.h>
#include <stdatomic.h>

#include "entry/bindings.h"
#include "options/options.h"

/* `name` in libc: all versions of it that are the next definition after ours.  `ours`: to this one, not to what the
 * rest of the program has. */
static void redirect(const struct symbols *libc, const char *name, ElfW(Addr) ours, struct changes *c)
{
    ElfW(Sym) *symbol = symbols_find(libc, name, NULL);
    if (symbol == NULL)
        return;
    const ElfW(Addr) next = (ElfW(Addr))dlsym(RTLD_NEXT, name),
                     to = ours != 0 ? ours : (ElfW(Addr))dlsym(RTLD_DEFAULT, name);
    for (; next != 0 && symbol != NULL; symbol = symbols_find(libc, name, symbol))
        if (libc->base + symbol->st_value == next)
            changes_add(c, &symbol->st_value, to - libc->base);
}

enum extent {
    redirected_own, /* the names that nobody before this library defines */
    redirected_all,
    redirected_count
};

static void *(*next_dlopen)(const char *, int);

/* At the start, for once libc's name is redirected its dlopen cannot be found. */
static __attribute__((constructor)) void find_next_dlopen(void)
{
    next_dlopen = (void *(*)(const char *, int))dlsym(RTLD_NEXT, "dlopen");
}

/* Two threads may do this at once, with the same result. */
static void redirect_ours(enum extent extent)
{
    struct link_map *libc, *own;
    struct symbols libcs, ours;
    Dl_info info;
    void *handle = next_dlopen(LIBC_SO, RTLD_LAZY | RTLD_NOLOAD);
    if (handle == NULL || dlinfo(handle, RTLD_DI_LINKMAP, &libc) != 0 ||
        dladdr1(&next_dlopen, &info, (void **)&own, RTLD_DL_LINKMAP) == 0 || !symbols_of(libc, &libcs) ||
        !symbols_of(own, &ours))
        return;
    /* Those before the first of the hash table are what it needs of others. */
    struct changes c = {0};
    for (size_t index = ours.first, count = symbols_count(&ours); index < count; index++) {
        const ElfW(Sym) *symbol = &ours.table[index];
        const char *name = ours.names + symbol->st_name;
        const struct link_map *before = bindings_definer_before(own, name);
        if (before == NULL)
            redirect(&libcs, name, 0, &c);
        else if (extent == redirected_all)
            redirect(&libcs, name, bindings_defines(before, "malloc") ? 0 : ours.base + symbol->st_value, &c);
    }
    changes_make(&c);
}

static COLD void prepare(enum extent extent)
{
    static _Atomic bool is_done[redirected_count];
    if (atomic_load(&is_done[redirected_all]) || atomic_load(&is_done[extent]))
        return;
    redirect_ours(extent);
    atomic_store(&is_done[extent], true);
}

/* libc's dlopen looks for the file on behalf of its caller, which it knows by the return address.  So it must be jumped
 * to, not called.  This file is compiled so that the last line is a jump; tests/api/deep_binding.c would see it if it
 * were not. */
EXPORT void *dlopen(const char *file, int mode);
EXPORT void *dlopen(const char *file, int mode)
{
    if (next_dlopen == NULL)
        find_next_dlopen();
    if (next_dlopen == NULL)
        return NULL;
    if (likely(file != NULL) && option_get(option_deepbind) == deepbind_on)
        prepare((mode & RTLD_DEEPBIND) != 0 ? redirected_all : redirected_own);
    return next_dlopen(file, mode);
}
