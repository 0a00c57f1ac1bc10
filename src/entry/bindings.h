/* SPDX-License-Identifier: MIT
 *
 * What names lead to in libraries that are loaded, and how that is changed.  Only in the shared library, for glibc.
 */
#ifndef SUTLER_ENTRY_BINDINGS_H
#define SUTLER_ENTRY_BINDINGS_H

#include <link.h>

#include "base/compiler.h"
#include "os/symbols.h"

/* None of those that only look calls libc, so that they may be called before a sanitizer's strcmp may; but for a name
 * whose library has a function that chooses the address (STT_GNU_IFUNC), for which the loader is asked. */

/* Whether a library, or the program, defines `name`; and the first one before `own` that does, or NULL. */
bool bindings_defines(const struct link_map *library, const char *name);
const struct link_map *bindings_definer_before(const struct link_map *own, const char *name);

/* The address that `name` has in the first library after `own` that defines it, and which one that is; 0: in none. */
ElfW(Addr) bindings_defined_after(const struct link_map *own, const char *name, const struct link_map **where);

/* Words of one library to write, which are read-only; found first, for the loader is not to be asked under a lock. */
#define CHANGES_MAX 128u
struct changes {
    unsigned count;
    struct {
        ElfW(Addr) * word;
        ElfW(Addr) value;
    } change[CHANGES_MAX];
};

/* If there are too many, those before are made first. */
void changes_add(struct changes *c, ElfW(Addr) * word, ElfW(Addr) value);

/* Writes them, or none if the system does not allow it; then there are none.  Thread-safe. */
void changes_make(struct changes *c);

#endif
