/* SPDX-License-Identifier: MIT */
#include "entry/bindings.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/bits.h"
#include "os/lock.h"
#include "os/os.h"

/* NULL if it does not define it. */
static const ElfW(Sym) * definition(const struct link_map *library, const char *name, struct symbols *s)
{
    return symbols_of(library, s) ? symbols_definition(s, name) : NULL;
}

bool bindings_defines(const struct link_map *library, const char *name)
{
    struct symbols s;
    return definition(library, name, &s) != NULL;
}

const struct link_map *bindings_definer_before(const struct link_map *own, const char *name)
{
    const struct link_map *first = NULL;
    for (const struct link_map *library = own->l_prev; library != NULL; library = library->l_prev)
        if (bindings_defines(library, name))
            first = library;
    return first;
}

ElfW(Addr) bindings_defined_after(const struct link_map *own, const char *name, const struct link_map **where)
{
    struct symbols s;
    for (const struct link_map *library = own->l_next; library != NULL; library = library->l_next) {
        const ElfW(Sym) *symbol = definition(library, name, &s);
        if (symbol == NULL)
            continue;
        *where = library;
        return ELF64_ST_TYPE(symbol->st_info) == STT_GNU_IFUNC ? (ElfW(Addr))dlsym(RTLD_NEXT, name)
                                                               : s.base + symbol->st_value;
    }
    return 0;
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
        changes_make(c);
    c->change[c->count].word = word;
    c->change[c->count++].value = value;
}

void changes_make(struct changes *c)
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
    c->count = 0;
}
