/* SPDX-License-Identifier: MIT
 *
 * Libraries loaded with RTLD_DEEPBIND (PHP loads its extensions so) look a name up in the libraries they need before
 * the program's: they would find libc's free, and give it blocks of ours, and libc's setuid, which knows nothing of the
 * manager.  So before the first such dlopen we patch libc's symbol table: under the names this library defines it leads
 * to the definitions that the rest of the program has.  All other names are bound as the flag says.
 * (docs/decisions/0011-deep-binding.md)
 *
 * A name is left alone where another library stands between us and libc with a definition of its own: it may look for
 * the next one when it is called, and would find itself.
 *
 * Only in the shared library: a static program's libc has no symbols to look up.
 */
#include <dlfcn.h>
#include <gnu/lib-names.h>
#include <link.h>
#include <pthread.h>
#include <string.h>

#include "base/bits.h"
#include "base/compiler.h"
#include "options/options.h"
#include "os/lock.h"
#include "os/os.h"
#include "os/symbols.h"

/* Returns false for a library that the loader finds by no such hash table. */
static bool symbols_of(const struct link_map *library, struct symbols *s)
{
    return symbols_read(library->l_ld, library->l_addr, true, s) && s->buckets != NULL;
}

static uint32_t hash_of(const char *name)
{
    uint32_t hash = 5381;
    for (; *name != '\0'; name++)
        hash = hash * 33 + (unsigned char)*name;
    return hash;
}

static struct lock writing = LOCK_FREE(rank_symbols); /* nothing of the loader's is called under it */

static void write_value(ElfW(Sym) * symbol, ElfW(Addr) value)
{
    void *page = (void *)align_down((uintptr_t)&symbol->st_value, os_page_bytes);
    lock_take(&writing);
    if (os_set_writable(page, os_page_bytes, true)) { /* else the library has what it would have without us */
        __atomic_store_n(&symbol->st_value, value, __ATOMIC_RELAXED); /* others may be looking names up */
        os_set_writable(page, os_page_bytes, false);
    }
    lock_release(&writing);
}

/* Redirects `name` in libc: all versions of it that are the next definition after ours. */
static void redirect(const struct symbols *libc, const char *name)
{
    ElfW(Addr) next = (ElfW(Addr))dlsym(RTLD_NEXT, name), everybodys = (ElfW(Addr))dlsym(RTLD_DEFAULT, name);
    uint32_t index = libc->buckets[hash_of(name) % libc->bucket_count];
    if (next == 0 || index < libc->first)
        return;
    for (;; index++) {
        ElfW(Sym) *symbol = &libc->table[index];
        if (libc->base + symbol->st_value == next && strcmp(libc->names + symbol->st_name, name) == 0)
            write_value(symbol, everybodys - libc->base);
        if (symbols_end_bucket(libc, index))
            return;
    }
}

static void *(*next_dlopen)(const char *, int);

/* At the start, for once libc's name is redirected its dlopen cannot be found. */
static __attribute__((constructor)) void find_next_dlopen(void)
{
    next_dlopen = (void *(*)(const char *, int))dlsym(RTLD_NEXT, "dlopen");
}

static void in_child(void)
{
    lock_reset(&writing);
}

/* Two threads may do this at once, with the same result. */
static void redirect_ours(void)
{
    struct link_map *libc, *own;
    struct symbols libcs, ours;
    Dl_info info;
    void *handle = next_dlopen(LIBC_SO, RTLD_LAZY | RTLD_NOLOAD);
    if (handle == NULL || dlinfo(handle, RTLD_DI_LINKMAP, &libc) != 0 ||
        dladdr1(&next_dlopen, &info, (void **)&own, RTLD_DL_LINKMAP) == 0 || !symbols_of(libc, &libcs) ||
        !symbols_of(own, &ours))
        return;
    pthread_atfork(NULL, NULL, in_child);
    /* Those before the first of the hash table are what it needs of others. */
    for (size_t index = ours.first, count = symbols_count(&ours); index < count; index++)
        redirect(&libcs, ours.names + ours.table[index].st_name);
}

static COLD void prepare_deep_binding(void)
{
    static _Atomic bool is_done;
    if (!atomic_load(&is_done))
        redirect_ours();
    atomic_store(&is_done, true);
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
    if (unlikely((mode & RTLD_DEEPBIND) != 0) && option_get(option_deepbind) == deepbind_on)
        prepare_deep_binding();
    return next_dlopen(file, mode);
}
