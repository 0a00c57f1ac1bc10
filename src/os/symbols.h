/* SPDX-License-Identifier: MIT
 *
 * The names that a library, or the kernel's vDSO, defines, and the hash table by which the loader finds them
 * (DT_GNU_HASH): for each bucket the index of its first symbol; for each symbol its hash, the last bit of which is set
 * where its bucket ends.
 */
#ifndef SUTLER_OS_SYMBOLS_H
#define SUTLER_OS_SYMBOLS_H

#include <link.h>

#include "base/compiler.h"

struct symbols {
    uintptr_t base; /* added to the addresses it names */
    ElfW(Sym) * table;
    const char *names;
    const uint32_t *old_hash; /* DT_HASH; NULL: there is none */
    uint32_t bucket_count, first;
    const uint32_t *buckets, *hashes; /* NULL: there is no DT_GNU_HASH */
};

static inline uintptr_t symbols_distance(uintptr_t a, uintptr_t b)
{
    return a < b ? b - a : a - b;
}

/* What an entry of a dynamic section leads to: the loader has added the base to it; or has not, where the section is
 * read-only, and in the kernel's library.  It leads into the library that the section itself lies in.  (The base may be
 * negative: of a library that was linked for a high address and is loaded at a lower one.) */
static inline void *symbols_address(const ElfW(Dyn) * entry, uintptr_t base)
{
    const uintptr_t here = (uintptr_t)entry, as_it_is = entry->d_un.d_ptr, moved = as_it_is + base;
    return (void *)(symbols_distance(as_it_is, here) <= symbols_distance(moved, here) ? as_it_is : moved);
}

/* From a dynamic section.  False if it names nothing. */
bool symbols_read(const ElfW(Dyn) * entry, uintptr_t base, struct symbols *s);

/* Of a library that is loaded. */
static inline bool symbols_of(const struct link_map *library, struct symbols *s)
{
    return library->l_ld != NULL && symbols_read(library->l_ld, library->l_addr, s);
}

/* How many the table has.  One of the hash tables is there. */
size_t symbols_count(const struct symbols *s);

/* The next symbol `name` of a library after `before`, or the first; a name may be there in several versions.  NULL: no
 * more. */
ElfW(Sym) * symbols_find(const struct symbols *s, const char *name, const ElfW(Sym) * before);
/* The first, if the library defines the name, or NULL.  A program may have an address for a name and still not define
 * it: that of a jump to whoever does. */
const ElfW(Sym) * symbols_definition(const struct symbols *s, const char *name);

static inline bool symbols_end_bucket(const struct symbols *s, size_t index)
{
    return (s->hashes[index - s->first] & 1) != 0;
}

#endif
