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

/* What an entry of a dynamic section leads to: the loader has added the base to it; or has not, where the section is
 * read-only, and in the kernel's library. */
static inline void *symbols_address(const ElfW(Dyn) * entry, uintptr_t base)
{
    return (void *)(entry->d_un.d_ptr < base ? entry->d_un.d_ptr + base : entry->d_un.d_ptr);
}

/* From a dynamic section.  False if it names nothing. */
bool symbols_read(const ElfW(Dyn) * entry, uintptr_t base, struct symbols *s);

/* How many the table has.  One of the hash tables is there. */
size_t symbols_count(const struct symbols *s);

static inline bool symbols_end_bucket(const struct symbols *s, size_t index)
{
    return (s->hashes[index - s->first] & 1) != 0;
}

#endif
