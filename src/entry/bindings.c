/* SPDX-License-Identifier: MIT */
#include "entry/bindings.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/auxv.h>

#include "base/bits.h"
#include "os/lock.h"
#include "os/os.h"

bool bindings_symbols(const struct link_map *library, struct symbols *s)
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

ElfW(Sym) * bindings_find(const struct symbols *s, const char *name, const ElfW(Sym) * before)
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

/* A program may have an address for a name and still not define it: that of a jump to whoever does.  The kernel's
 * library, whose addresses are not complete, has none. */
bool bindings_defined_before(const struct link_map *own, const char *name)
{
    for (const struct link_map *library = own->l_prev; library != NULL; library = library->l_prev) {
        struct symbols s;
        if (library->l_addr != 0 && library->l_addr == getauxval(AT_SYSINFO_EHDR))
            continue;
        if (!bindings_symbols(library, &s))
            return true; /* who knows */
        const ElfW(Sym) *symbol = bindings_find(&s, name, NULL);
        if (symbol != NULL && symbol->st_shndx != SHN_UNDEF)
            return true;
    }
    return false;
}

/* ---- changes ---- */

static struct lock writing = LOCK_FREE(rank_symbols); /* nothing of the loader's is called under it */

static void in_child(void)
{
    lock_reset(&writing);
}

void changes_add(struct changes *c, ElfW(Addr) * word, ElfW(Addr) value)
{
    if (c->count == CHANGES_MAX)
        return;
    c->change[c->count].word = word;
    c->change[c->count++].value = value;
}

void changes_make(const struct changes *c)
{
    static _Atomic bool is_registered;
    uintptr_t start = UINTPTR_MAX, end = 0;
    for (unsigned i = 0; i < c->count; i++) {
        start = min_size(start, align_down((uintptr_t)c->change[i].word, os_page_bytes));
        end = max_size(end, align_up((uintptr_t)(c->change[i].word + 1), os_page_bytes));
    }
    if (c->count == 0)
        return;
    if (!atomic_exchange(&is_registered, true))
        pthread_atfork(NULL, NULL, in_child);
    lock_take(&writing);
    if (os_set_writable((void *)start, end - start, true)) { /* else the library has what it would have without us */
        for (unsigned i = 0; i < c->count; i++)              /* others may be looking names up */
            __atomic_store_n(c->change[i].word, c->change[i].value, __ATOMIC_RELAXED);
        os_set_writable((void *)start, end - start, false);
    }
    lock_release(&writing);
}
