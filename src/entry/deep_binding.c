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
 * defines: it may be looking in libc for what is behind it.
 *
 * Only in the shared library: a static program's libc has no symbols to look up.
 */
#include <dlfcn.h>
#include <gnu/lib-names.h>
#include <link.h>
#include <pthread.h>
#include <string.h>
#include <sys/auxv.h>

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

/* Values to write into libc's symbols, found first, for the loader is not to be asked under the lock. */
#define CHANGES_MAX 128u
struct changes {
    unsigned count;
    struct {
        ElfW(Sym) * symbol;
        ElfW(Addr) value;
    } change[CHANGES_MAX];
};

static void make(const struct changes *c)
{
    uintptr_t start = UINTPTR_MAX, end = 0;
    for (unsigned i = 0; i < c->count; i++) {
        start = min_size(start, align_down((uintptr_t)c->change[i].symbol, os_page_bytes));
        end = max_size(end, align_up((uintptr_t)(c->change[i].symbol + 1), os_page_bytes));
    }
    if (c->count == 0)
        return;
    lock_take(&writing);
    if (os_set_writable((void *)start, end - start, true)) { /* else the library has what it would have without us */
        for (unsigned i = 0; i < c->count; i++) /* others may be looking names up */
            __atomic_store_n(&c->change[i].symbol->st_value, c->change[i].value, __ATOMIC_RELAXED);
        os_set_writable((void *)start, end - start, false);
    }
    lock_release(&writing);
}

/* The next symbol `name` of a library after `before`, or the first; a name may be there in several versions. */
static ElfW(Sym) * find(const struct symbols *s, const char *name, const ElfW(Sym) * before)
{
    uint32_t index = s->bucket_count == 0 ? 0 : s->buckets[hash_of(name) % s->bucket_count];
    if (index < s->first || index == 0) /* an empty bucket */
        return NULL;
    for (;; index++) {
        ElfW(Sym) *symbol = &s->table[index];
        if (symbol > before && strcmp(s->names + symbol->st_name, name) == 0)
            return symbol;
        if (symbols_end_bucket(s, index))
            return NULL;
    }
}

/* Whether a library before ours, or the program, defines `name`.  A program may have an address for a name and still
 * not define it: that of a jump to whoever does.  The kernel's library, whose addresses are not complete, has none. */
static bool is_defined_before(const struct link_map *own, const char *name)
{
    for (const struct link_map *library = own->l_prev; library != NULL; library = library->l_prev) {
        struct symbols s;
        if (library->l_addr != 0 && library->l_addr == getauxval(AT_SYSINFO_EHDR))
            continue;
        if (!symbols_of(library, &s))
            return true; /* who knows */
        const ElfW(Sym) *symbol = find(&s, name, NULL);
        if (symbol != NULL && symbol->st_shndx != SHN_UNDEF)
            return true;
    }
    return false;
}

/* `name` in libc: all versions of it that are the next definition after ours. */
static void redirect(const struct symbols *libc, const char *name, struct changes *c)
{
    ElfW(Sym) *symbol = find(libc, name, NULL);
    if (symbol == NULL)
        return;
    ElfW(Addr) next = (ElfW(Addr))dlsym(RTLD_NEXT, name), everybodys = (ElfW(Addr))dlsym(RTLD_DEFAULT, name);
    for (; next != 0 && symbol != NULL; symbol = find(libc, name, symbol))
        if (libc->base + symbol->st_value == next && c->count < CHANGES_MAX) {
            c->change[c->count].symbol = symbol;
            c->change[c->count++].value = everybodys - libc->base;
        }
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

static void in_child(void)
{
    lock_reset(&writing);
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
    static _Atomic bool is_registered;
    if (!atomic_exchange(&is_registered, true))
        pthread_atfork(NULL, NULL, in_child);
    /* Those before the first of the hash table are what it needs of others. */
    struct changes c = {0};
    for (size_t index = ours.first, count = symbols_count(&ours); index < count; index++) {
        const char *name = ours.names + ours.table[index].st_name;
        if (extent == redirected_all || !is_defined_before(own, name))
            redirect(&libcs, name, &c);
    }
    make(&c);
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
