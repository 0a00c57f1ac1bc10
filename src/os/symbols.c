/* SPDX-License-Identifier: MIT */
#include "os/symbols.h"

#include "base/bits.h"
#include "os/line.h"

bool symbols_read(const ElfW(Dyn) * entry, uintptr_t base, struct symbols *s)
{
    const uint32_t *hash = NULL;
    *s = (struct symbols){.base = base};
    for (; entry->d_tag != DT_NULL; entry++) {
        void *at = symbols_address(entry, base);
        if (entry->d_tag == DT_SYMTAB)
            s->table = at;
        else if (entry->d_tag == DT_STRTAB)
            s->names = at;
        else if (entry->d_tag == DT_HASH)
            s->old_hash = at;
        else if (entry->d_tag == DT_GNU_HASH)
            hash = at;
    }
    if (hash != NULL) {
        size_t filter_words = hash[2] * (sizeof(ElfW(Addr)) / sizeof *hash);
        s->bucket_count = hash[0];
        s->first = hash[1];
        s->buckets = hash + 4 + filter_words;
        s->hashes = s->buckets + s->bucket_count;
    }
    return s->table != NULL && s->names != NULL && (s->old_hash != NULL || s->buckets != NULL);
}

size_t symbols_count(const struct symbols *s)
{
    if (s->old_hash != NULL)
        return s->old_hash[1];
    /* Only the buckets say how many there are: the last symbol is in the one that starts highest. */
    size_t last = 0;
    for (size_t i = 0; i < s->bucket_count; i++)
        last = max_size(last, s->buckets[i]);
    if (last < s->first)
        return s->first;
    while (!symbols_end_bucket(s, last))
        last++;
    return last + 1;
}

static uint32_t hash_of(const char *name)
{
    uint32_t hash = 5381;
    for (; *name != '\0'; name++)
        hash = hash * 33 + (unsigned char)*name;
    return hash;
}

/* By DT_HASH alone: one after the other. */
static ElfW(Sym) * find_slowly(const struct symbols *s, const char *name, const ElfW(Sym) * before)
{
    for (size_t i = 1, count = symbols_count(s); i < count; i++)
        if (&s->table[i] > before && text_equal(s->names + s->table[i].st_name, name))
            return &s->table[i];
    return NULL;
}

ElfW(Sym) * symbols_find(const struct symbols *s, const char *name, const ElfW(Sym) * before)
{
    if (s->buckets == NULL)
        return find_slowly(s, name, before);
    uint32_t index = s->bucket_count == 0 ? 0 : s->buckets[hash_of(name) % s->bucket_count];
    if (index < s->first || index == 0) /* an empty bucket */
        return NULL;
    for (;; index++) {
        ElfW(Sym) *symbol = &s->table[index];
        if (symbol > before && text_equal(s->names + symbol->st_name, name))
            return symbol;
        if (symbols_end_bucket(s, index))
            return NULL;
    }
}

const ElfW(Sym) * symbols_definition(const struct symbols *s, const char *name)
{
    const ElfW(Sym) *symbol = symbols_find(s, name, NULL);
    return symbol != NULL && symbol->st_shndx != SHN_UNDEF ? symbol : NULL;
}
